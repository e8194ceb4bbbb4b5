/** VS Code runs this once the extension is uninstalled: the server that it installed goes, too. */

import { spawnSync } from "node:child_process";
import { homedir } from "node:os";

import { readNote } from "./uninstallNote";

const note = readNote();
if (note !== undefined) {
  const env = { ...process.env, ...note.environment };
  spawnSync(note.program, ["uninstall", "--yes"], { cwd: homedir(), env });
}
