/** What the menu of the status item offers, what helps in this state first. No editor. */

import type { Remedy, Status, Switches } from "./status";

export interface MenuEntry {
  readonly label: string;
  readonly detail?: string;
  readonly description?: string;
  readonly remedy?: Remedy;
  readonly command?: string; // without `foregram.`; an entry that does nothing parts two groups
}

/** Where completion is on: here, where no workspace says otherwise, and in this language. */
export interface Here {
  readonly switches: Switches;
  readonly isEnabledEverywhere: boolean;
  readonly language: string | undefined;
}

/** `canRun`: whether the remedy is one of ours. */
export function menuEntries(
  status: Status,
  here: Here,
  canRun: (remedy: Remedy) => boolean,
): MenuEntry[] {
  const first = firstEntries(status, canRun);
  const isFirst = (entry: MenuEntry): boolean =>
    first.some(
      (one) => one.command === entry.command || SAME[one.remedy?.action ?? ""] === entry.command,
    );
  const groups = [first, USE, switchEntries(here), MODEL, CARE];
  const rest = groups.slice(1).map((group) => group.filter((entry) => !isFirst(entry)));
  return [first, ...rest]
    .filter((group) => group.length > 0)
    .flatMap((group, place) => (place === 0 ? group : [PARTING, ...group]));
}

function firstEntries(status: Status, canRun: (remedy: Remedy) => boolean): MenuEntry[] {
  const { remedy } = status;
  if (remedy !== undefined && canRun(remedy)) {
    const label = `$(${status.kind === "Inactive" ? "check" : "tools"}) ${remedy.title}`;
    return [{ label, detail: status.message, remedy }];
  }
  return status.kind === "Error" || status.kind === "Warning" ? TROUBLE : [];
}

function switchEntries({ switches, isEnabledEverywhere, language }: Here): MenuEntry[] {
  const { enable, languages } = switches;
  const entries: MenuEntry[] = [
    { label: `${verb(enable)} here`, description: "this workspace", command: "toggle" },
    { label: `${verb(isEnabledEverywhere)} everywhere`, command: "toggleEverywhere" },
  ];
  if (language !== undefined) {
    const label = `${verb(languages[language] !== false)} for ${language}`;
    entries.push({ label, command: "toggleLanguage" });
  }
  return entries;
}

function verb(isEnabled: boolean): string {
  return isEnabled ? "$(circle-slash) Disable" : "$(check) Enable";
}

/** The entry that does the same as a remedy. */
const SAME: Readonly<Record<string, string>> = {
  chooseHost: "chooseHost",
  chooseModel: "chooseModel",
  doctor: "doctor",
  enable: "toggle",
  enableLanguage: "toggleLanguage",
  install: "install",
  openSettings: "openSettings",
  restart: "restart",
  restartServer: "restart",
  setToken: "setToken",
  showLogs: "showLogs",
  trigger: "trigger",
};

const PARTING: MenuEntry = { label: "" };
const DOCTOR: MenuEntry = { label: "$(pulse) Doctor", command: "doctor" };
const LOGS: MenuEntry = { label: "$(output) Show logs", command: "showLogs" };
const RESTART: MenuEntry = { label: "$(debug-restart) Restart the server", command: "restart" };
const TROUBLE: MenuEntry[] = [DOCTOR, RESTART, LOGS];
const USE: MenuEntry[] = [
  { label: "$(sparkle) Suggest now", command: "trigger" },
  { label: "$(question) Why no suggestion?", command: "showWhy" },
];
const MODEL: MenuEntry[] = [
  { label: "$(chip) Choose model", command: "chooseModel" },
  { label: "$(remote) Use a local or a remote host", command: "chooseHost" },
  { label: "$(key) Set the remote host's token", command: "setToken" },
];
const CARE: MenuEntry[] = [
  { label: "$(gear) Open settings", command: "openSettings" },
  RESTART,
  LOGS,
  DOCTOR,
  { label: "$(cloud-download) Install or update the server", command: "install" },
];
