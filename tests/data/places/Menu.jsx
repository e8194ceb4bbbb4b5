import { createContext, useContext, useEffect, useId, useRef, useState } from "react";
import PropTypes from "prop-types";
import "./menu.css";

const MenuContext = createContext({ close: () => {}, active: -1 });

const KEYS = {
  ArrowDown: (index, count) => (index + 1) % count,
  ArrowUp: (index, count) => (index - 1 + count) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/**
 * Closes what is open as soon as the user clicks beside it.
 * @param {{ current: HTMLElement | null }} ref
 * @param {() => void} onOutside
 */
function useClickOutside(ref, onOutside) {
  useEffect(() => {
    const listener = (event) => {
      if (!ref.current || ref.current.contains(event.target)) return;
      onOutside(event);
    };
    document.addEventListener("mousedown", listener);
    return () => document.removeEventListener("mousedown", listener);
  }, [ref, onOutside]);
}

const classes = (...names) => names.filter(Boolean).join(" ");

function shortcutText(shortcut, mac = /Mac|iPhone/.test(navigator.platform)) {
  return shortcut
    .split("+")
    .map((part) => (part === "mod" ? (mac ? "⌘" : "Ctrl") : part.toUpperCase()))
    .join(mac ? "" : "+");
}

export function MenuItem({ children, icon = null, shortcut, disabled = false, index, onSelect }) {
  const { close, active } = useContext(MenuContext);
  const ref = useRef(null);

  useEffect(() => {
    if (active === index) ref.current?.focus({ preventScroll: true });
  }, [active, index]);

  return (
    <li role="none">
      <button
        ref={ref}
        role="menuitem"
        tabIndex={active === index ? 0 : -1}
        className={classes("menu-item", disabled && "menu-item--disabled")}
        aria-disabled={disabled}
        onClick={(event) => {
          if (disabled) return;
          onSelect?.(event);
          close();
        }}
      >
        {icon && <span className="menu-icon">{icon}</span>}
        {children}
        {shortcut ? <kbd>{shortcutText(shortcut)}</kbd> : null}
      </button>
    </li>
  );
}

export default function Menu({ label, items, align = "left", onOpenChange, ...rest }) {
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const container = useRef(null);
  const id = useId();

  const change = (next) => {
    setOpen(next);
    setActive(next ? items.findIndex((item) => !item.disabled) : -1);
    onOpenChange?.(next, { label, count: items.length });
  };

  useClickOutside(container, () => open && change(false));

  function onKeyDown(event) {
    if (event.key === "Escape") return change(false);
    const move = KEYS[event.key];
    if (move === undefined || !open) return;
    event.preventDefault(); // the page mustn't scroll under the menu
    setActive((index) => move(index, items.length));
  }

  return (
    <div ref={container} className="menu" onKeyDown={onKeyDown} {...rest}>
      <button
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={`menu-${id}`}
        onClick={() => change(!open)}
      >
        {label} <span aria-hidden="true">{open ? "▴" : "▾"}</span>
      </button>
      {open && (
        <MenuContext.Provider value={{ close: () => change(false), active }}>
          <ul id={`menu-${id}`} role="menu" style={{ [align]: 0, minWidth: "12rem" }}>
            {items.map(({ title, hint, ...item }, index) => (
              <MenuItem key={item.key ?? title} index={index} {...item}>
                {title}
                {hint && <small title={hint.long}> &mdash; {hint.short || "it's new"}</small>}
              </MenuItem>
            ))}
            {items.length === 0 ? (
              <li className="menu-empty">Nothing here</li>
            ) : (
              <li className="count">{`${items.length} entr${items.length > 1 ? "ies" : "y"}`}</li>
            )}
          </ul>
        </MenuContext.Provider>
      )}
    </div>
  );
}

Menu.propTypes = {
  label: PropTypes.node.isRequired,
  align: PropTypes.oneOf(["left", "right"]),
  items: PropTypes.arrayOf(
    PropTypes.shape({
      title: PropTypes.string.isRequired,
      shortcut: PropTypes.string,
      disabled: PropTypes.bool,
      onSelect: PropTypes.func,
    }),
  ).isRequired,
};

export const FileMenu = ({ onNew, onOpen }) => (
  <Menu
    label={<strong>File</strong>}
    items={[
      { title: "New", shortcut: "mod+n", onSelect: onNew },
      { title: "Open…", shortcut: "mod+o", onSelect: () => onOpen({ multiple: true }) },
    ]}
    data-testid="file-menu"
  />
);
