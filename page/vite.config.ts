import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig, type Plugin } from "vite";

const ROOT = import.meta.dirname;
const ASSET = join(ROOT, "../src/plainrisk/report/page.html");

// What the asset is made of; tests/report/test_asset.py takes the same hash of the same files.
const SOURCES = ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];

function sources(): string[] {
  const inside = readdirSync(join(ROOT, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
  return [...SOURCES, ...inside].sort();
}

function sourceHash(): string {
  const hash = createHash("sha256");
  for (const path of sources()) {
    hash.update(`${path}\n`).update(createHash("sha256").update(readFileSync(join(ROOT, path))).digest("hex"));
  }
  return hash.digest("hex");
}

const integrity = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Writes the script and the style of the build into one HTML file, with a policy that allows them and nothing else. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const item of Object.values(bundle)) {
        if (item.type === "chunk") script += item.code;
        else if (item.fileName.endsWith(".css")) style += item.source;
      }
      // Neither text may end its element, and a line ending must not differ between what is hashed and what is read.
      script = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--").trim();
      style = style.replaceAll("</style", "<\\/style").trim();
      const policy = [
        "default-src 'none'",
        `script-src ${integrity(script)}`,
        `style-src ${integrity(style)}`,
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      const head =
        `<meta http-equiv="Content-Security-Policy" content="${policy}" />\n` +
        `    <meta name="plainrisk-source" content="${sourceHash()}" />`;
      const page = readFileSync(join(ROOT, "index.html"), "utf8")
        .replace('<meta charset="utf-8" />', (found) => `${found}\n    ${head}`)
        .replace("</head>", (found) => `  <style>${style}</style>\n  ${found}`)
        .replace(/<script type="module".*<\/script>/, () => `<script>${script}</script>`);
      writeFileSync(ASSET, page);
      for (const name of Object.keys(bundle)) delete bundle[name];
    },
  };
}

export default defineConfig({
  root: ROOT,
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    write: true,
    emptyOutDir: false,
    rolldownOptions: { input: join(ROOT, "src/main.tsx"), output: { format: "iife", entryFileNames: "page.js" } },
  },
  plugins: [oneFile()],
});
