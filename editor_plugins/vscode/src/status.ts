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
  readonly state?: "starting" | "loading" | "ready" | "failed" | "unreachable";
  readonly percentage?: number; // of the model that is loading
  readonly model?: string; // the one that runs
  readonly remedy?: Remedy;
}

export const STARTING: Status = {
  kind: "Normal",
  message: "the language server starts",
  busy: true,
  state: "starting",
};

/** What a person has switched on: completion, everywhere and for languages, and ghost text. */
export interface Switches {
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

/** The codicon's name: waiting for a model looks another way than waiting for an answer. */
export function iconOf(status: Status): string {
  if (status.busy !== true) {
    return ICONS[status.kind];
  }
  return status.state === "starting" || status.state === "loading" ? "loading~spin" : "sync~spin";
}

/** What stands beside the icon. */
export function labelOf(status: Status): string {
  return status.percentage === undefined
    ? "foregram"
    : `foregram ${Math.floor(status.percentage)} %`;
}

/**
 * What a person should see: trouble first, then what they have switched off themselves (which the
 * server says only when it is asked the next time), then the server's own state.
 */
export function statusToShow(server: Status, switches: Switches, language?: string): Status {
  if (server.kind === "Error" || server.kind === "Warning") {
    return server;
  }
  if (!switches.ghostText) {
    return off("editor.inlineSuggest.enabled is off: no ghost text", GHOST_TEXT);
  }
  if (!switches.enable) {
    return off("completion is switched off in the settings", ENABLE);
  }
  if (language !== undefined && switches.languages[language] === false) {
    const remedy = { action: "enableLanguage", title: `Enable for ${language}` };
    return off(`completion is switched off for ${language}`, remedy);
  }
  return server;
}

const ENABLE = { action: "enable", title: "Enable here" };
const GHOST_TEXT = { action: "showGhostTextSetting", title: "Open the setting of ghost text" };

function off(message: string, remedy: Remedy): Status {
  return { kind: "Inactive", message, remedy };
}
