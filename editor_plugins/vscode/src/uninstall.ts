/** VS Code runs this once the extension is uninstalled: the server that it installed goes, too. */

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const note = readFileSync(join(__dirname, "uninstall.json"), "utf8"); // written by extension.ts
const { program, environment } = JSON.parse(note) as { program: string; environment: object };
const env = { ...process.env, ...environment };
spawnSync(program, ["uninstall", "--yes"], { cwd: homedir(), env });
