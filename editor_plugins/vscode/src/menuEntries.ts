/** What the menu of the status item offers, what helps in this state first. No editor. */

import type { Language, Remedy, Status, Switches } from "./status";

export interface MenuEntry {
  readonly label: string;
  readonly detail?: string;
  readonly description?: string;
  readonly remedy?: Remedy;
  readonly command?: string; // without `foregram.`; an entry that does nothing parts two groups
}

/** Where suggestions are on: here, where no workspace says otherwise, and in this language. */
export interface Here {
  readonly switches: Switches;
  readonly isEnabledEverywhere: boolean;
  readonly language: Language | undefined;
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
    { label: `${verb(enable)} Here`, description: "this workspace", command: "toggle" },
    { label: `${verb(isEnabledEverywhere)} Everywhere`, command: "toggleEverywhere" },
  ];
  if (language !== undefined) {
    const label = `${verb(languages[language.id] !== false)} for ${language.title}`;
    entries.push({ label, command: "toggleLanguage" });
  }
  return entries;
}

function verb(isEnabled: boolean): string {
  return isEnabled ? "$(circle-slash) Turn Off" : "$(check) Turn On";
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
const DOCTOR: MenuEntry = { label: "$(pulse) Check Installation", command: "doctor" };
const LOGS: MenuEntry = { label: "$(output) Show Logs", command: "showLogs" };
const RESTART: MenuEntry = { label: "$(debug-restart) Restart foregram", command: "restart" };
const TROUBLE: MenuEntry[] = [DOCTOR, RESTART, LOGS];
const USE: MenuEntry[] = [
  { label: "$(sparkle) Suggest Now", command: "trigger" },
  { label: "$(question) Why No Suggestion?", command: "showWhy" },
];
const MODEL: MenuEntry[] = [
  { label: "$(chip) Choose Model…", command: "chooseModel" },
  { label: "$(remote) Choose Where the Model Runs…", command: "chooseHost" },
  { label: "$(key) Set the Remote Host's Token…", command: "setToken" },
];
const CARE: MenuEntry[] = [
  { label: "$(gear) Open Settings", command: "openSettings" },
  RESTART,
  LOGS,
  DOCTOR,
  { label: "$(cloud-download) Install or Update the Server…", command: "install" },
];
