/** Who else works with this machine's model. No editor. */

interface HostUse {
  readonly running: boolean;
  readonly model?: string;
  readonly numOtherClients: number;
}

const ENDS =
  "It ends for all of them, and the next request starts the model that its settings name.";

/** What a person has to know before the host ends; undefined where it ends for nobody else. */
export function warningOf(use: unknown): string | undefined {
  if (!isHostUse(use)) {
    return `Other windows and editors may use the model that runs on this machine. ${ENDS}`;
  }
  if (!use.running || use.numOtherClients === 0) {
    return undefined;
  }
  const number = use.numOtherClients;
  const others = number === 1 ? "Another window or editor uses" : `${number} others use`;
  return `${others} ${use.model ?? "the model that runs now"}. ${ENDS}`;
}

function isHostUse(value: unknown): value is HostUse {
  return typeof value === "object" && value !== null && "numOtherClients" in value;
}
