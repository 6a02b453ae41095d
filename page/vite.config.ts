import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig, type Plugin } from "vite";

const ROOT = import.meta.dirname;

// What an asset is made of, and where it goes; tests take the same hash of the same files (tests/report/test_asset.py).
const SHARED = ["package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];
const PAGES = {
  decision: { html: "index.html", folder: "src", more: ["index.html"], asset: "../src/plainrisk/report/page.html" },
  study: {
    html: "study/index.html",
    folder: "study",
    more: ["src/tokens.css"],
    asset: "../lab/src/plainrisk_lab/user_study/page.html",
  },
};
type Page = (typeof PAGES)["decision"];

function sources({ folder, more }: Page): string[] {
  const inside = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
  return [...SHARED, ...more, ...inside].sort();
}

function sourceHash(built: Page): string {
  const hash = createHash("sha256");
  for (const path of sources(built)) {
    hash.update(`${path}\n`).update(createHash("sha256").update(readFileSync(join(ROOT, path))).digest("hex"));
  }
  return hash.digest("hex");
}

const integrity = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Writes the script and the style of the build into one HTML file, with a policy that allows them and nothing else. */
function oneFile(built: Page): Plugin {
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
        `    <meta name="plainrisk-source" content="${sourceHash(built)}" />`;
      const page = readFileSync(join(ROOT, built.html), "utf8")
        .replace('<meta charset="utf-8" />', (found) => `${found}\n    ${head}`)
        .replace("</head>", (found) => `  <style>${style}</style>\n  ${found}`)
        .replace(/<script type="module".*<\/script>/, () => `<script>${script}</script>`);
      writeFileSync(join(ROOT, built.asset), page);
      for (const name of Object.keys(bundle)) delete bundle[name];
    },
  };
}

export default defineConfig(({ mode }) => {
  const built = mode === "study" ? PAGES.study : PAGES.decision;
  return {
    root: ROOT,
    build: {
      target: "es2022",
      modulePreload: false,
      cssCodeSplit: false,
      write: true,
      emptyOutDir: false,
      rolldownOptions: {
        input: join(ROOT, built.folder, "main.tsx"),
        output: { format: "iife", entryFileNames: "page.js" },
      },
    },
    plugins: [oneFile(built)],
  };
});
