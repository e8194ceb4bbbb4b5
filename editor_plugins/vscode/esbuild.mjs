// Bundles the extension, once for Node and once for browsers; with --tests the unit tests instead.
import { readdirSync } from "node:fs";
import * as esbuild from "esbuild";

const shared = { bundle: true, format: "cjs", external: ["vscode"], logLevel: "warning" };
const node = { ...shared, platform: "node", target: "node20" };

if (process.argv.includes("--tests")) {
  const folder = "../../tests/editor_plugins/vscode/";
  const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...node,
    entryPoints: tests.map((name) => folder + name),
    outdir: "dist/tests",
  });
} else {
  const minify = true;
  await esbuild.build({
    ...node,
    minify,
    entryPoints: ["src/extension.ts", "src/uninstall.ts"],
    outdir: "dist",
  });
  const web = { ...shared, minify, platform: "browser" };
  await esbuild.build({ ...web, entryPoints: ["src/extension.web.ts"], outdir: "dist" });
}
