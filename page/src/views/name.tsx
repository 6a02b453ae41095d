/** A name that may be broken where its words meet, so that NumTradesOpen fits a phone. */
export function Name({ text }: { text: string }) {
  const words = text.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[_/.])/);
  return <>{words.map((word, i) => (i ? [<wbr key={i} />, word] : word))}</>;
}
