/** What the menu of the status item offers, what helps in this state first. No editor. */

import { isTrouble, type Language, type Remedy, type Status, type Switches } from "./status";

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
  readonly isRemote: boolean; // the model runs on a remote host
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
    entry.command !== undefined &&
    first.some(({ command, remedy }) => (command ?? commandOf(remedy)) === entry.command);
  const isInstalled = status.state !== "missing" && status.state !== "installing";
  const all = [USE, switchEntries(here), here.isRemote ? REMOTE : LOCAL, CARE];
  const rest = isInstalled ? all : [SETUP];
  return [first, ...rest.map((group) => group.filter((entry) => !isFirst(entry)))]
    .filter((group) => group.length > 0)
    .flatMap((group, place) => (place === 0 ? group : [PARTING, ...group]));
}

function firstEntries(status: Status, canRun: (remedy: Remedy) => boolean): MenuEntry[] {
  const { remedy } = status;
  if (remedy !== undefined && canRun(remedy)) {
    const label = `$(${status.kind === "Inactive" ? "check" : "tools"}) ${remedy.title}`;
    const entry = { label, detail: status.message, remedy };
    return status.state === "failed" ? [RETRY, entry] : [entry];
  }
  return isTrouble(status) ? TROUBLE : [];
}

function switchEntries({ switches, isEnabledEverywhere, language }: Here): MenuEntry[] {
  const { enable, languages } = switches;
  const entries: MenuEntry[] = [
    { label: "$(bell-slash) Snooze…", command: "snooze" },
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

/** The command that does the same as a remedy; most have one name. */
function commandOf(remedy: Remedy | undefined): string | undefined {
  return remedy && (OTHER_NAMES[remedy.action] ?? remedy.action);
}

const OTHER_NAMES: Readonly<Record<string, string>> = {
  enable: "toggle",
  enableLanguage: "toggleLanguage",
  restartServer: "restart",
};

const RETRY: MenuEntry = { label: "$(debug-restart) Try Again", command: "restart" };
const PARTING: MenuEntry = { label: "" };
const DOCTOR: MenuEntry = { label: "$(pulse) Check Installation", command: "doctor" };
const LOGS: MenuEntry = { label: "$(output) Show Logs", command: "showLogs" };
const RESTART: MenuEntry = { label: "$(debug-restart) Restart foregram", command: "restart" };
const TROUBLE: MenuEntry[] = [DOCTOR, RESTART, LOGS];
const USE: MenuEntry[] = [
  { label: "$(sparkle) Suggest Now", command: "trigger" },
  { label: "$(question) Why No Suggestion?", command: "showWhy" },
  { label: "$(graph) Show Saved Keystrokes", command: "showSaved" },
];
const WHERE: MenuEntry = { label: "$(remote) Choose Where the Model Runs…", command: "chooseHost" };
const LOCAL: MenuEntry[] = [{ label: "$(chip) Choose Model…", command: "chooseModel" }, WHERE];
const TOKEN: MenuEntry = { label: "$(key) Set the Remote Host's Token…", command: "setToken" };
const REMOTE: MenuEntry[] = [WHERE, TOKEN];
const SETTINGS: MenuEntry = { label: "$(gear) Open Settings", command: "openSettings" };
const SETUP: MenuEntry[] = [
  { label: "$(rocket) Get Started", command: "getStarted" },
  {
    label: "$(folder-opened) Use an Existing Installation…",
    remedy: { action: "showCommandSetting", title: "" },
  },
  SETTINGS,
  LOGS,
];
const CARE: MenuEntry[] = [
  SETTINGS,
  RESTART,
  LOGS,
  DOCTOR,
  { label: "$(cloud-download) Install or Update the Server…", command: "install" },
  { label: "$(trash) Remove the Server…", command: "remove" },
];
