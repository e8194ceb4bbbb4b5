/** What is said of a state, and what is offered in it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ageOf,
  linesOf,
  told,
  type EmptyAnswer,
} from "../../../editor_plugins/vscode/src/answers";
import { warningOf } from "../../../editor_plugins/vscode/src/hostUse";
import { menuEntries } from "../../../editor_plugins/vscode/src/menuEntries";
import {
  areOffered,
  objectionTo,
  questionFor,
} from "../../../editor_plugins/vscode/src/modelNames";
import { ReportTexts } from "../../../editor_plugins/vscode/src/reportTexts";
import {
  iconOf,
  isToBeSetUp,
  labelOf,
  STARTING,
  statusToShow,
  type Remedy,
  type Status,
} from "../../../editor_plugins/vscode/src/status";

const ON = { ghostText: true, enable: true, languages: {} };
const HERE = {
  switches: ON,
  isEnabledEverywhere: true,
  isRemote: false,
  language: { id: "python", title: "Python" },
};
const PLACE = { name: "a.py", line: 7 };
const READY: Status = {
  kind: "Normal",
  message: "Tiny on cpu",
  state: "ready",
};

function labels(status: Status, canRun = true): string[] {
  return menuEntries(status, HERE, () => canRun).map(({ label }) => label);
}

test("the remedy stands on top of the menu, once", () => {
  const remedy = { action: "install", title: "Install the Server" };
  const offered = labels({
    kind: "Warning",
    message: "not installed",
    remedy,
  });
  assert.match(offered[0] ?? "", /Install the Server$/);
  assert.equal(
    offered.filter((label) => /Install (the|or)/.test(label)).length,
    1,
  );
  assert.match(labels(READY)[0] ?? "", /Suggest Now$/);
  const restart = { action: "restartServer", title: "Restart" };
  const ended = labels({ kind: "Error", message: "ended", remedy: restart });
  assert.equal(ended.filter((label) => /Restart/.test(label)).length, 1);
});

test("the first steps are for who has no server and can install one", () => {
  const remedy = { action: "install", title: "Install the Server" };
  const missing: Status = {
    kind: "Warning",
    state: "missing",
    message: "not installed",
  };
  assert.ok(isToBeSetUp({ ...missing, remedy }));
  assert.ok(!isToBeSetUp(missing)); // as on Windows
  assert.ok(!isToBeSetUp({ ...READY, remedy }));
});

test("only what can be done in a state is offered in it", () => {
  const missing: Status = {
    kind: "Warning",
    state: "missing",
    message: "no server",
  };
  assert.deepEqual(
    labels(missing).filter((label) =>
      /Suggest|Saved|Choose|Turn|Remove/.test(label),
    ),
    [],
  );
  assert.ok(
    labels(missing).some((label) =>
      label.endsWith("Use an Existing Installation…"),
    ),
  );
  const remote = menuEntries(READY, { ...HERE, isRemote: true }, () => true);
  const commands = remote.map(({ command }) => command);
  assert.ok(commands.includes("setToken") && !commands.includes("chooseModel"));
  assert.ok(
    !menuEntries(READY, HERE, () => true).some(
      ({ command }) => command === "setToken",
    ),
  );
});

test("a model that failed is tried again by the first entry", () => {
  const remedy = { action: "chooseModel", title: "Choose Another Model" };
  const failed: Status = {
    kind: "Error",
    state: "failed",
    message: "no such model",
    remedy,
  };
  const [first, second, ...rest] = labels(failed);
  assert.match(first ?? "", /Try Again$/);
  assert.match(second ?? "", /Choose Another Model$/);
  assert.ok(!rest.some((label) => /Restart|Choose Model/.test(label)));
});

test("trouble without a remedy that we can run offers to look into it", () => {
  const failed: Status = { kind: "Error", message: "no host" };
  assert.match(labels(failed)[0] ?? "", /Check Installation$/);
  const remedy = { action: "wait", title: "Wait" };
  assert.match(
    labels({ ...failed, remedy }, false)[0] ?? "",
    /Check Installation$/,
  );
});

test("what is switched off by a setting is mended by it, language, workspace or ghost text", () => {
  const remedyOf = (switches: object, id?: string): Remedy | undefined =>
    statusToShow(
      READY,
      { ...ON, ...switches },
      id ? { id, title: "Go" } : undefined,
    ).remedy;
  assert.deepEqual(remedyOf({ languages: { go: false } }, "go"), {
    action: "enableLanguage",
    title: "Turn On for Go",
  });
  assert.equal(remedyOf({ enable: false })?.action, "enable");
  assert.equal(remedyOf({ ghostText: false })?.action, "showGhostTextSetting");
  assert.equal(remedyOf({}, "go"), undefined);
});

test("loading looks another way than answering, and says how far it is", () => {
  const loading: Status = {
    ...READY,
    state: "loading",
    busy: true,
    percentage: 42.7,
  };
  assert.equal(iconOf(loading), "loading~spin");
  assert.equal(iconOf(STARTING), "loading~spin");
  assert.equal(iconOf({ ...READY, busy: true }), "sync~spin");
  assert.equal(labelOf(loading), "foregram 42 %");
  assert.equal(labelOf(READY), "foregram");
});

test("an empty answer is told with its place and its age, what holds now without", () => {
  const answer: EmptyAnswer = {
    ...{ file: "a.py", reason: "blank", sentence: "only white space" },
    ...{ line: 7, time_s: 0, age_s: 12.3 },
  };
  const past = { now: null, answers: [answer] };
  assert.equal(
    told(past, PLACE, READY).sentence,
    "a.py, line 7, 12 s ago: only white space",
  );
  const now = { now: answer, answers: [answer] };
  assert.equal(told(now, PLACE, READY).sentence, "a.py: only white space");
  assert.match(
    linesOf(now, "a.py").join("\n"),
    /^now {2}a\.py.*\n.*12 s ago.*line 7: only white space \(blank\)$/,
  );
  assert.deepEqual([59, 60, 3599, 7200].map(ageOf), [
    "59 s",
    "1 min",
    "59 min",
    "2 h",
  ]);
});

test("an answer at the cursor's line is told before a later one elsewhere", () => {
  const at = (line: number): EmptyAnswer => ({
    ...{ file: "a.py", reason: "blank", sentence: `nothing at ${line}` },
    ...{ line, time_s: 0, age_s: 1 },
  });
  const why = { now: null, answers: [at(9), at(7)] };
  assert.equal(
    told(why, PLACE, READY).sentence,
    "a.py, line 7, 1 s ago: nothing at 7",
  );
  assert.equal(
    told(why, { ...PLACE, line: 1 }, READY).sentence,
    "a.py, elsewhere in this file (line 9), 1 s ago: nothing at 9",
  );
});

test("what only the extension knows is the reason where the server knows none", () => {
  const nothing = { now: null, answers: [] };
  const remedy = { action: "install", title: "Install the Server" };
  const missing: Status = { kind: "Warning", message: "not installed", remedy };
  for (const why of [undefined, nothing]) {
    const { sentence, remedy: offered } = told(why, PLACE, missing);
    assert.deepEqual([sentence, offered], ["a.py: not installed", remedy]);
  }
  assert.equal(told(undefined, PLACE, STARTING).sentence, "a.py: Starting…");
  assert.match(
    told(nothing, PLACE, READY).sentence,
    /^Nothing prevents suggestions/,
  );
});

test("ending a host is asked where others use it, and where nobody knows", () => {
  const use = { running: true, model: "Tiny", numOtherClients: 1 };
  assert.match(warningOf(use) ?? "", /^Another window or editor uses Tiny\./);
  assert.match(warningOf(undefined) ?? "", /^Other windows and editors may/);
  assert.equal(warningOf({ ...use, numOtherClients: 0 }), undefined);
  assert.equal(warningOf({ ...use, running: false }), undefined);
});

test("the list of models names the one that runs, and never one that is only guessed", () => {
  assert.match(questionFor("Tiny", "7b"), /; Tiny runs now$/);
  assert.match(questionFor(undefined, "7b"), /; 7b is set now$/);
  assert.match(questionFor(undefined, ""), /or another model$/);
  assert.ok(areOffered([{ name: "7b", description: "downloads 15.2 GB" }]));
  assert.ok(!areOffered(undefined), "an older server knows no models");
  assert.ok(!areOffered([null]));
});

test("a report that is opened anew begins anew, and takes no line of the former run", () => {
  const changed: string[] = [];
  const texts = new ReportTexts((path) => changed.push(path));
  const first = texts.begin("/doctor", []);
  first("one");
  const second = texts.begin("/doctor", ["head"]);
  assert.deepEqual(changed, ["/doctor", "/doctor", "/doctor"]);
  first("late");
  second("two");
  assert.equal(texts.of("/doctor"), "head\ntwo\n");
  assert.equal(changed.length, 4);
});
