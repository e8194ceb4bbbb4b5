/** Which servers this extension can talk to. */

export const MINIMUM_SERVER = "0.1.0";

/** Whether a version is the minimum or newer; one that is not numbers counts as old. */
export function isAtLeast(version: string, minimum: string): boolean {
  return /^\d/.test(version) && version.localeCompare(minimum, "en", { numeric: true }) >= 0;
}
