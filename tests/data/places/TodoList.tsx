import React, { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";

/* The list of a single project: what's to be done, by whom, and what is done already. */

type Filter = "all" | "open" | "done";

export interface Todo {
  id: number;
  text: string;
  done: boolean;
  due?: string;
  labels: string[];
}

type Action =
  | { type: "loaded"; todos: Todo[] }
  | { type: "added"; text: string; due?: string }
  | { type: "toggled"; id: number }
  | { type: "removed"; id: number };

interface TodoListProps<M = unknown> {
  project: string;
  initial?: Todo[];
  meta?: M;
  onCount?: (open: number, all: number) => void;
  renderEmpty?: (filter: Filter) => React.ReactNode;
}

const FILTERS: readonly Filter[] = ["all", "open", "done"];
const LABEL = /#([\p{L}\d-]+)/gu;

function reducer(todos: Todo[], action: Action): Todo[] {
  switch (action.type) {
    case "loaded":
      return action.todos;
    case "added": {
      const id = Math.max(0, ...todos.map((todo) => todo.id)) + 1;
      const labels = [...action.text.matchAll(LABEL)].map(([, label]) => label.toLowerCase());
      return [...todos, { id, text: action.text.trim(), done: false, due: action.due, labels }];
    }
    case "toggled":
      return todos.map((todo) => (todo.id === action.id ? { ...todo, done: !todo.done } : todo));
    case "removed":
      return todos.filter(({ id }) => id !== action.id);
  }
}

function useStored<T>(key: string, fallback: T): [T, React.Dispatch<React.SetStateAction<T>>] {
  const [value, setValue] = useState<T>(() => {
    const stored = window.localStorage.getItem(key);
    return stored === null ? fallback : (JSON.parse(stored) as T);
  });
  useEffect(() => {
    window.localStorage.setItem(key, JSON.stringify(value));
  }, [key, value]);
  return [value, setValue];
}

export function TodoList({ project, initial = [], onCount, renderEmpty }: TodoListProps) {
  const [todos, dispatch] = useReducer(reducer, initial);
  const [filter, setFilter] = useStored<Filter>(`todos.${project}.filter`, "open");
  const [draft, setDraft] = useState("");
  const input = useRef<HTMLInputElement>(null);

  const shown = useMemo(
    () => todos.filter((todo) => filter === "all" || todo.done === (filter === "done")),
    [todos, filter],
  );

  useEffect(() => {
    const controller = new AbortController();
    fetch(`/api/projects/${encodeURIComponent(project)}/todos`, { signal: controller.signal })
      .then((response) => (response.ok ? response.json() : Promise.reject(response.status)))
      .then((loaded: Todo[]) => dispatch({ type: "loaded", todos: loaded }))
      .catch((reason) => console.warn(`couldn't load the list of ${project}:`, reason));
    return () => controller.abort();
  }, [project]);

  useEffect(() => onCount?.(todos.filter((todo) => !todo.done).length, todos.length), [todos]);

  const submit = useCallback(
    (event: React.FormEvent<HTMLFormElement>) => {
      event.preventDefault();
      if (draft.trim() === "") return;
      dispatch({ type: "added", text: draft });
      setDraft("");
      input.current?.focus();
    },
    [draft],
  );

  return (
    <section className="todos" aria-label={`Todos of ${project}`}>
      <h2 style={{ marginBottom: 8, color: todos.length > 20 ? "crimson" : undefined }}>
        {project} <small>({shown.length})</small>
      </h2>
      <nav>
        {FILTERS.map((name) => (
          <button key={name} disabled={name === filter} onClick={() => setFilter(name)}>
            {name[0].toUpperCase() + name.slice(1)}
          </button>
        ))}
      </nav>
      <form onSubmit={submit}>
        <input
          ref={input}
          value={draft}
          placeholder="What's next? Use #labels"
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && setDraft("")}
        />
      </form>
      {/* an empty list says why it's empty */}
      {shown.length === 0 && (renderEmpty?.(filter) ?? <p className="empty">Nothing {filter}.</p>)}
      <ul>
        {shown.map(({ id, text, done, due = "", labels }) => (
          <li key={id} className={["todo", done && "done"].filter(Boolean).join(" ")}>
            <label>
              <input
                type="checkbox"
                checked={done}
                onChange={() => dispatch({ type: "toggled", id })}
              />
              {text} {due !== "" && <time dateTime={due}>{new Date(due).toDateString()}</time>}
            </label>
            {labels.length > 0 ? <em>{labels.join(", ")}</em> : null}
            <button title={`Remove "${text}"`} onClick={() => dispatch({ type: "removed", id })}>
              &times;
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export default React.memo(TodoList);
