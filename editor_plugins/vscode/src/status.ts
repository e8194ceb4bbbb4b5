/** What the status item says: the server's own word, or why there is no server to ask. No editor. */

/** Copilot's words for states, which the server sends in `didChangeStatus`. */
export type Kind = "Normal" | "Warning" | "Error" | "Inactive";

/** What mends it: `title` is a button's label. An action that nobody here knows is shown as text. */
export interface Remedy {
  readonly action: string;
  readonly title: string;
}

export interface Status {
  readonly kind: Kind;
  readonly message: string;
  readonly busy?: boolean;
  /** The server's word, or ours while there is none. */
  readonly state?:
    ("starting" | "loading" | "ready" | "failed" | "unreachable") | ("missing" | "installing");
  readonly percentage?: number; // of the model that is loading
  readonly model?: string; // the one that runs
  readonly remedy?: Remedy;
}

export const STARTING: Status = {
  kind: "Normal",
  message: "Starting…",
  busy: true,
  state: "starting",
};

/** A language by its identifier, and as people call it. */
export interface Language {
  readonly id: string;
  readonly title: string;
}

/** The server is being installed: `what` says how far that is, or where. */
export function installing(what: string): Status {
  const remedy = { action: "install", title: "Show the Progress" };
  const message = `Installing: ${what}`;
  return { kind: "Normal", message, busy: true, state: "installing", remedy };
}

/** Starts the server again, and the model with it where that had failed. */
export const TRY_AGAIN: Remedy = { action: "restartServer", title: "Try Again" };

/** What a person has turned on: suggestions, everywhere and for languages, and ghost text. */
export interface Switches {
  readonly snoozedUntil?: Date | undefined;
  readonly ghostText: boolean; // VS Code's own, of all extensions
  readonly enable: boolean;
  readonly languages: Readonly<Record<string, boolean>>;
}

const ICONS: Readonly<Record<Kind, string>> = {
  Normal: "sparkle",
  Warning: "warning",
  Error: "error",
  Inactive: "circle-slash",
};

/** Whether there is no server yet, and one can be installed. */
export function isToBeSetUp({ state, remedy }: Status): boolean {
  return state === "missing" && remedy?.action === "install";
}

export function isTrouble({ kind }: Status): boolean {
  return kind === "Error" || kind === "Warning";
}

/** The codicon's name: waiting for a model looks another way than waiting for an answer. */
export function iconOf(status: Status): string {
  if (status.busy !== true) {
    return ICONS[status.kind];
  }
  const isWaiting = ["starting", "loading", "installing"].includes(status.state ?? "");
  return isWaiting ? "loading~spin" : "sync~spin";
}

/** What stands beside the icon. */
export function labelOf(status: Status): string {
  const { percentage } = status;
  return percentage === undefined ? "foregram" : `foregram ${Math.floor(percentage)} %`;
}

/**
 * What a person should see: trouble first, then what they have turned off themselves (which the
 * server says only when it is asked the next time), then the server's own state.
 */
export function statusToShow(server: Status, switches: Switches, language?: Language): Status {
  if (isTrouble(server) || server.state === "installing") {
    return server;
  }
  if (!switches.ghostText) {
    const message = "editor.inlineSuggest.enabled is off, so no suggestion is shown";
    return off(message, "showGhostTextSetting", "Open the Setting");
  }
  if (switches.snoozedUntil !== undefined) {
    const options = { hour: "2-digit", minute: "2-digit" } as const;
    const clock = switches.snoozedUntil.toLocaleTimeString([], options);
    return off(`Snoozed until ${clock}`, "wake", "Turn On Again");
  }
  if (!switches.enable) {
    return off("Suggestions are off", "enable", "Turn On Here");
  }
  if (language !== undefined && switches.languages[language.id] === false) {
    return off(`Off for ${language.title}`, "enableLanguage", `Turn On for ${language.title}`);
  }
  return server;
}

function off(message: string, action: string, title: string): Status {
  return { kind: "Inactive", message, remedy: { action, title } };
}
