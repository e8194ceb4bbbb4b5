/** Which servers this extension can talk to. */

export const MINIMUM_SERVER = "0.1.0";

/** Whether a version is the minimum or newer; one that is not numbers counts as old. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [have, need] = [parts(version), parts(minimum)];
  const different = need.findIndex((part, place) => (have[place] ?? -1) !== part);
  return different === -1 || (have[different] ?? -1) > (need[different] ?? 0);
}

function parts(version: string): number[] {
  return version.split(".").map((part) => Number.parseInt(part, 10) || 0);
}
