// Answers by the script of the page itself, as it is shipped: reads {page, answer, ...} as JSON from stdin.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const asked = JSON.parse(readFileSync(0, "utf8"));
const [from, to] = [asked.page.lastIndexOf("<script>") + "<script>".length, asked.page.lastIndexOf("</script>")];
runInThisContext(asked.page.slice(from, to));
process.stdout.write(runInThisContext(asked.answer)(globalThis.plainrisk, asked));
