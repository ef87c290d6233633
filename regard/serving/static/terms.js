// Lists that people edit: rows of one or two fields, a button to add one and one to delete each, kept in the browser.
import { element, keep, kept } from "./dom.js";

// `columns` are what the fields are called. `changed` is called whenever a value is another; rows() are the full ones.
export function editor(root, name, columns, changed) {
  const list = element("div", { class: "rows" });
  const add = element("button", { type: "button" }, "Add");
  root.append(list, add);

  const values = () => [...list.children].map((row) => [...row.querySelectorAll("input")].map((field) => field.value.trim()));
  const rows = () => values().filter((row) => row.every(Boolean));
  const edited = () => {
    keep(name, values().filter((row) => row.some(Boolean)));
    changed();
  };

  function append(row) {
    const fields = columns.map((label, i) => {
      const field = element("input", { "aria-label": label, placeholder: label, maxlength: 200 });
      field.value = row[i] ?? "";
      return field;
    });
    const gone = element("button", { type: "button", "aria-label": "Delete", title: "Delete" }, "×");
    const line = element("div", { class: "row" }, ...fields, gone);
    gone.addEventListener("click", () => {
      (line.nextElementSibling?.querySelector("input") || add).focus();
      line.remove();
      edited();
    });
    list.append(line);
    return fields[0];
  }

  const given = kept(name, []);
  for (const row of Array.isArray(given) ? given : []) if (Array.isArray(row)) append(row.map(String));
  list.addEventListener("input", edited);
  add.addEventListener("click", () => append([]).focus());
  return rows;
}
