import type { Model } from "../engine";
import { isProtected, titleOf } from "./words";

/** A name that may be broken where its words meet, so that NumTradesOpen fits a phone. */
export function Name({ text }: { text: string }) {
  const words = text.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[_/.])/);
  return <>{words.map((word, i) => (i ? [<wbr key={i} />, word] : word))}</>;
}

/** What people call a feature or a pair, and where that differs, its name in the data. */
export function Title({ model, name, features }: { model: Model; name: string; features?: readonly string[] }) {
  const title = titleOf(model, name, features);
  return (
    <>
      <Name text={title} /> {isProtected(model, features ?? [name]) && <small class="tag">protected</small>}
      {title !== name && <small class="raw">{name}</small>}
    </>
  );
}
