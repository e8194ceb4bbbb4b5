#!/usr/bin/env node
"use strict";

/*
 * Reads an access log of a web server and prints what was asked for most,
 * how long it took, and which clients got errors.
 */

const fs = require("fs");
const readline = require("node:readline");
const { basename, extname } = require("node:path");

const LINE = /^(\S+) \S+ (\S+) \[([^\]]+)\] "([A-Z]+) ([^ "]+)[^"]*" (\d{3}) (\d+|-)(?: (\d+)ms)?$/;
const ASSET = /\.(?:css|js|png|svg|woff2?)$/i;
const UNITS = ["B", "KiB", "MiB", "GiB"];

const defaults = {
  top: 10,
  assets: false,
  since: null,
  colours: process.stdout.isTTY && !process.env.NO_COLOR,
};

function parseLine(line) {
  const match = LINE.exec(line);
  if (!match) return null;
  const [, client, user, when, method, url, status, size, took] = match;
  return {
    client,
    user: user === "-" ? undefined : user,
    at: new Date(when.replace(":", " ").replace(/\//g, " ")),
    method,
    path: url.split("?")[0].replace(/\/\d+(?=\/|$)/g, "/:id"),
    status: Number(status),
    size: size === "-" ? 0 : parseInt(size, 10),
    took: took !== undefined ? Number(took) : NaN,
  };
}

function parseOptions(argv, options = { ...defaults }) {
  const files = [];
  for (let i = 0; i < argv.length; i++) {
    switch (argv[i]) {
      case "--top":
        options.top = Number(argv[++i]) || defaults.top;
        break;
      case "--assets":
        options.assets = true;
        break;
      case "--since":
        options.since = new Date(argv[++i]);
        break;
      default:
        if (argv[i].startsWith("-")) throw new Error(`don't know the option '${argv[i]}'`);
        files.push(argv[i]);
    }
  }
  return { files, options };
}

async function* readEntries(file, { assets, since }) {
  const input = file === "-" ? process.stdin : fs.createReadStream(file, { encoding: "utf8" });
  for await (const line of readline.createInterface({ input, crlfDelay: Infinity })) {
    const entry = parseLine(line.trim());
    if (entry === null || (since && entry.at < since)) continue;
    if (assets || !ASSET.test(entry.path)) yield entry;
  }
}

const bytes = (count, digits = 1) => {
  const power = Math.min(Math.floor(Math.log2(count || 1) / 10), UNITS.length - 1);
  return `${(count / 1024 ** power).toFixed(power > 0 ? digits : 0)} ${UNITS[power]}`;
};

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

class Summary {
  #paths = new Map();
  #errors = {};
  total = { requests: 0, size: 0 };

  add({ path, method, client, status, size, took }) {
    const key = `${method} ${path}`;
    const seen = this.#paths.get(key) ?? { count: 0, times: [] };
    seen.count += 1;
    if (!Number.isNaN(took)) seen.times.push(took);
    this.#paths.set(key, seen);
    if (status >= 500) (this.#errors[client] ||= []).push({ key, status });
    this.total.requests++;
    this.total.size += size;
  }

  top(limit) {
    return [...this.#paths.entries()]
      .sort(([, a], [, b]) => b.count - a.count)
      .slice(0, limit)
      .map(([key, { count, times }]) => {
        const sorted = times.slice().sort((a, b) => a - b);
        return { key, count, median: quantile(sorted, 0.5), slow: quantile(sorted, 0.95) };
      });
  }

  get unlucky() {
    return Object.keys(this.#errors).filter((client) => this.#errors[client].length > 3);
  }
}

async function main(argv) {
  const { files, options } = parseOptions(argv);
  const red = (text) => (options.colours ? `\x1b[31m${text}\x1b[0m` : text);
  for (const file of files.length ? files : ["-"]) {
    const summary = new Summary();
    for await (const entry of readEntries(file, options)) summary.add(entry);
    const { requests, size } = summary.total;
    console.log(`${basename(file, extname(file))}: ${requests} requests, ${bytes(size)}`);
    summary.top(options.top).forEach(({ key, count, median = "?", slow = "?" }, index) => {
      const place = String(index + 1).padStart(3, " ");
      console.log(`${place}. ${key.padEnd(40)} ${count} ${median}/${slow} ms`);
    });
    if (summary.unlucky.length > 0) console.log(red(`errors: ${summary.unlucky.join(", ")}`));
  }
}

if (require.main === module) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}

module.exports = { parseLine, parseOptions, bytes, quantile, Summary };
