/** Which addresses a remote host may have, and who else works with this machine's model. No editor. */

const OWN_NAMES = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** What is wrong with the address of a remote host, as the server would say; or undefined. */
export function objectionToAddress(text: string, allowsPlainHttp: boolean): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\/[^/]/.test(text)) {
    return "an http:// or https:// address";
  }
  const isSafe = url.protocol === "https:" || OWN_NAMES.test(url.hostname) || allowsPlainHttp;
  return isSafe
    ? undefined
    : "Others on the way could read your code and the token: use https://, or turn on insecureHttp";
}

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
