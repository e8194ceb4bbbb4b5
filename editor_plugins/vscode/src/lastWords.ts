/** What a process wrote last: the sentence with which it ended, if it ended badly. */

const MAX_CHARACTERS = 4000;

export class LastWords {
  private text = "";

  add(chunk: string): void {
    this.text = (this.text + chunk).slice(-MAX_CHARACTERS);
  }

  /** The last line that says something; of a command's own failures it is the whole reason. */
  get sentence(): string {
    const lines = this.text.split("\n").map((line) => line.trim());
    return lines.findLast((line) => line !== "") ?? "it said nothing";
  }
}
