/** Work that one process of this machine does at a time. No editor. */

import { statSync } from "node:fs";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

const BEAT_MS = 5000; // after which who works touches its file again
const DEAD_MS = 6 * BEAT_MS; // nobody works who has not touched it for so long

/** Whether somebody works, this process or another. */
export function isAtWork(path: string): boolean {
  const touched = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return touched !== undefined && Date.now() - touched < DEAD_MS;
}

/** Works, unless somebody does; the file at `path` says so. Whether the work was done. */
export async function alone(path: string, work: () => Promise<boolean>): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true });
  if (!isAtWork(path)) {
    await rm(path, { force: true });
  }
  try {
    await writeFile(path, "", { flag: "wx" });
  } catch {
    return false; // another was faster
  }
  const timer = setInterval(() => {
    void utimes(path, new Date(), new Date()).catch(() => undefined); // somebody has removed it
  }, BEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await rm(path, { force: true });
  }
}
