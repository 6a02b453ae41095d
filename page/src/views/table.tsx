import type { ComponentChildren } from "preact";
import { plain } from "./format";

export interface Column<T> {
  head: string;
  /** The value as a file holds it. */
  value: (row: T) => unknown;
  /** A number as a person reads it; numbers stand to the right. */
  as?: (value: number | null | undefined) => string;
  /** Anything else as a person reads it, if different. */
  text?: (row: T) => ComponentChildren;
  /** In the file alone. */
  hidden?: boolean;
}

interface Props<T> {
  /** Of the file that can be downloaded; without it there is none. */
  name?: string | undefined;
  caption: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  /** Show the caption to screen readers alone, where a heading says the same. */
  quiet?: boolean;
}

/** A table that scrolls sideways where it must, and can be downloaded as CSV. */
export function Table<T>({ name, caption, rows, columns: all, quiet = true }: Props<T>) {
  const columns = all.filter((c) => !c.hidden);
  return (
    <div class="table-box">
      <div class="table-scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class={quiet ? "unseen" : ""}>{caption}</caption>
          <thead>
            <tr>
              {columns.map((c) => (
                <th key={c.head} scope="col" class={c.as ? "numeric" : ""}>
                  {c.head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                {columns.map((c) => (
                  <td key={c.head} class={c.as ? "numeric" : ""} data-head={c.head}>
                    {c.text ? c.text(row) : c.as ? c.as(c.value(row) as number) : plain(c.value(row))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {name && (
        <button type="button" class="quiet download" onClick={() => download(`${name}.csv`, toCsv(rows, all))}>
          Download CSV
        </button>
      )}
    </div>
  );
}

export function toCsv<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const lines = [columns.map((c) => c.head), ...rows.map((row) => columns.map((c) => c.value(row)))];
  return lines.map((line) => `${line.map(field).join(",")}\r\n`).join("");
}

/** One field. Text that a spreadsheet would take for a formula gets an apostrophe before it. */
function field(value: unknown): string {
  let text = plain(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function download(name: string, text: string, type = "text/csv"): void {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
