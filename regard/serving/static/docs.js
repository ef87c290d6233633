"use strict";

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function kindOf(schema) {
  if (schema.oneOf) return schema.oneOf.map(kindOf).join(" or ");
  if (schema.enum) return schema.enum.join(" or ");
  if (schema.type === "array") return `list of ${kindOf(schema.items || {})}`;
  const most = schema.maxLength || schema.maximum || schema.maxItems;
  return [].concat(schema.type || "any").join(" or ") + (most ? ` (at most ${most})` : "");
}

function fieldsOf(body) {
  const table = element("table");
  for (const [name, schema] of Object.entries(body.properties)) {
    const row = element("tr");
    row.append(element("td", name, "name"), element("td", kindOf(schema)));
    row.append(element("td", (body.required || []).includes(name) ? "required" : ""));
    table.append(row);
  }
  return table;
}

async function show() {
  const spec = await (await fetch("spec")).json();
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const part = element("section", undefined, "panel");
      part.append(element("h2", `${method.toUpperCase()} ${path}`), element("p", route.summary));
      const content = route.requestBody && Object.values(route.requestBody.content)[0];
      if (content) part.append(fieldsOf(content.schema));
      document.getElementById("routes").append(part);
    }
  }
}

show();
