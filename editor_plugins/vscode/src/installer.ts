/** Installs the server with a person's consent: every command is shown before it runs. */

import { rm } from "node:fs/promises";
import * as vscode from "vscode";

import { onPath } from "./command";
import { asTyped, bundle, bundleSteps, findPython, installSteps, type Step } from "./installation";
import { run } from "./process";

export class Installer {
  constructor(
    private readonly environment: string,
    private readonly extensionFolder: string,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  /**
   * Asks, prepares (which may refuse), installs `wanted` (or what came with the extension). Whether
   * anything has changed: a failed installation leaves no server.
   */
  async install(wanted: string, prepare: () => Promise<boolean>): Promise<boolean> {
    const steps = await this.plan(wanted);
    if (steps === undefined || !(await consents(steps)) || !(await prepare())) {
      return false;
    }
    const failure = await this.runAll(steps);
    if (failure !== undefined) {
      this.output.error(failure);
      void this.tellFailure(failure);
    }
    return true;
  }

  private async tellFailure(failure: string): Promise<void> {
    const sentence = `foregram could not be installed: ${failure}`;
    if ((await vscode.window.showErrorMessage(sentence, "Show Logs")) !== undefined) {
      await vscode.commands.executeCommand("foregram.showLogs");
    }
  }

  private async plan(wanted: string): Promise<Step[] | undefined> {
    if (process.platform === "win32") {
      tell("foregram runs on Linux and macOS: open this folder in WSL or through Remote-SSH.");
      return undefined;
    }
    const python = await findPython();
    if (python === undefined) {
      tell("foregram needs Python 3.11 or newer with venv and pip, which is not on the path.");
      return undefined;
    }
    if (wanted !== "") {
      const hasGpu = onPath("nvidia-smi", process.env["PATH"] ?? "") !== undefined;
      return installSteps(python, this.environment, wanted, hasGpu);
    }
    const brought = bundle(this.extensionFolder);
    if (brought === undefined) {
      tell("this build of the extension brings no server: name one in foregram.server.package.");
      return undefined;
    }
    return bundleSteps(python, this.environment, brought);
  }

  /** Runs the steps with their progress; the reason where one failed. */
  private async runAll(steps: readonly Step[]): Promise<string | undefined> {
    const title = "Installing foregram";
    const location = vscode.ProgressLocation.Notification;
    return vscode.window.withProgress(
      { location, title, cancellable: true },
      async (bar, token) => {
        const stopper = new AbortController();
        token.onCancellationRequested(() => {
          stopper.abort();
        });
        const onLine = (line: string): void => {
          this.output.info(line);
          bar.report({ message: line.slice(0, 80) });
        };
        for (const step of steps) {
          this.output.info(`> ${asTyped(step)}`);
          const options = { onLine, signal: stopper.signal };
          if (step.unless !== undefined) {
            const checked = await run(step.program, step.unless, options);
            if (checked.status === 0) {
              continue;
            }
          }
          const ended = await run(step.program, step.args, options);
          if (ended.status !== 0 || token.isCancellationRequested) {
            await rm(this.environment, { recursive: true, force: true });
            return token.isCancellationRequested ? "Installation cancelled" : ended.lastLine;
          }
        }
        return undefined;
      },
    );
  }
}

async function consents(steps: readonly Step[]): Promise<boolean> {
  const detail = [
    "These commands will run. They download the engine and a small model, 2 GB or more, into",
    "the extension's own folder, and change nothing else:\n\n",
    steps.map(asTyped).join("\n\n"),
  ].join(" ");
  const answer = await vscode.window.showInformationMessage(
    "Install the foregram server?",
    { modal: true, detail },
    "Install",
    "Copy the Commands",
  );
  if (answer === "Copy the Commands") {
    await vscode.env.clipboard.writeText(steps.map(asTyped).join("\n"));
  }
  return answer === "Install";
}

function tell(sentence: string): void {
  void vscode.window.showErrorMessage(sentence);
}
