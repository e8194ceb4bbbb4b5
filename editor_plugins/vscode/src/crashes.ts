/** How often the server has ended by itself: a crash loop is stopped, a rare crash is mended. */

export const CRASH_LIMIT = 3;
const WINDOW_MS = 3 * 60_000;
const PAUSE_MS = 500; // before the first new start; more before later ones

export class Crashes {
  private times: number[] = [];

  /** Counts one. The pause before a new start in ms, or undefined where three were enough. */
  add(now: number): number | undefined {
    this.times = [...this.times.filter((time) => now - time < WINDOW_MS), now];
    return this.times.length < CRASH_LIMIT ? PAUSE_MS * this.times.length : undefined;
  }

  /** A person has asked for a new start. */
  forget(): void {
    this.times = [];
  }
}
