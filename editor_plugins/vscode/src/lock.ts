/** A file that says that one process of this machine is at work. No editor. */

import { statSync } from "node:fs";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

const BEAT_MS = 5000; // after which its holder touches the file again
const DEAD_MS = 6 * BEAT_MS; // one that was not touched for so long has no holder any more

export class Lock {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly path: string) {}

  /** Whether somebody holds it, this process or another. */
  get isHeld(): boolean {
    const touched = statSync(this.path, { throwIfNoEntry: false })?.mtimeMs;
    return touched !== undefined && Date.now() - touched < DEAD_MS;
  }

  /** Takes it; whether nobody else had it. */
  async take(): Promise<boolean> {
    await mkdir(dirname(this.path), { recursive: true });
    if (!this.isHeld) {
      await rm(this.path, { force: true });
    }
    const isTaken = await writeFile(this.path, "", { flag: "wx" }).then(
      () => true,
      () => false, // another was faster
    );
    if (isTaken) {
      this.timer = setInterval(() => {
        const now = new Date();
        void utimes(this.path, now, now).catch(() => undefined); // somebody has removed it
      }, BEAT_MS);
    }
    return isTaken;
  }

  /** Gives it back, if this process has it. */
  async release(): Promise<void> {
    if (this.timer !== undefined) {
      clearInterval(this.timer);
      this.timer = undefined;
      await rm(this.path, { force: true });
    }
  }
}
