/** What the status item says: the server's own word, or why there is no server to ask. No editor. */

/** Copilot's words for states, which the server sends in `didChangeStatus`. */
export type Kind = "Normal" | "Warning" | "Error" | "Inactive";

export interface Status {
  readonly kind: Kind;
  readonly message: string;
  readonly busy?: boolean;
}

export const STARTING: Status = {
  kind: "Normal",
  message: "the language server starts",
  busy: true,
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

/** The codicon's name. */
export function iconOf(status: Status): string {
  return status.busy === true ? "loading~spin" : ICONS[status.kind];
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
    return { kind: "Inactive", message: "editor.inlineSuggest.enabled is off: no ghost text" };
  }
  if (!switches.enable) {
    return { kind: "Inactive", message: "completion is switched off in the settings" };
  }
  if (language !== undefined && switches.languages[language] === false) {
    return { kind: "Inactive", message: `completion is switched off for ${language}` };
  }
  return server;
}
