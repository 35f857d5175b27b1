/**
 * Compiles the sources for the package: `#name` fields and methods become ordinary ones, and a field that the
 * constructor sets is not declared as `undefined` first. A private name is looked up in its class's scope at each use,
 * and a field that was `undefined` first has no fixed type. Together with the bundle this saves a fifth of a run of a
 * node (`docs/decisions/0006`).
 *
 * A name gets that of its class, so that a class and its base class do not collide. Lines keep their numbers. Tests on
 * Node run the compiled code, those on Deno and Bun the sources.
 */
import { parseSync, Visitor } from "rolldown/utils";

/** In place of the characters from `start` to before `end`. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface ClassScope {
  readonly name: string;
  /** Its private names. */
  readonly hidden: ReadonlySet<string>;
  /** Fields that its constructor always sets; private ones with the `#`. */
  readonly set: ReadonlySet<string>;
}

type VisitorObject = ConstructorParameters<typeof Visitor>[0];
type Class = Parameters<NonNullable<VisitorObject["ClassDeclaration"]>>[0];
type Member = Class["body"]["body"][number];
type Method = Parameters<NonNullable<VisitorObject["MethodDefinition"]>>[0];
type Statement = NonNullable<Method["value"]["body"]>["body"][number];

/**
 * The rooms with code that takes nanoseconds. Objects of other rooms hide their private fields when they are printed.
 */
const SOURCES = /\/src\/(cells|loop|scheduler)\/.*\.ts$/;

/** For the bundler and for Vitest. */
export function plainFields() {
  return {
    name: "plain-fields",
    enforce: "pre" as const,
    transform: {
      filter: { id: SOURCES },
      handler: (code: string) => ({ code: withPlainFields(code), map: null }),
    },
  };
}

export function withPlainFields(code: string): string {
  let plain = "";
  let at = 0;
  for (const { start, end, text } of editsOf(code).toSorted((a, b) => a.start - b.start)) {
    plain += code.slice(at, start) + text;
    at = end;
  }
  return plain + code.slice(at);
}

function editsOf(code: string): readonly Edit[] {
  const { program, errors } = parseSync("source.ts", code);
  if (errors.length > 0) throw new SyntaxError(errors[0]?.message);
  const edits: Edit[] = [];
  const scopes: ClassScope[] = [];
  let unnamed = 0;
  const enter = (one: Class) => {
    const scope = scopeOf(one, one.id?.name ?? `class${++unnamed}`);
    scopes.push(scope);
    for (const member of one.body.body) {
      if (!isSetAnyway(member, scope)) continue;
      const { start, end } = member;
      edits.push({ start, end, text: code.slice(start, end).replaceAll(/[^\n]/g, "") });
    }
  };
  const leave = () => void scopes.pop();
  const isGone = (start: number) => edits.some((edit) => edit.start <= start && start < edit.end);
  new Visitor({
    ClassDeclaration: enter,
    "ClassDeclaration:exit": leave,
    ClassExpression: enter,
    "ClassExpression:exit": leave,
    BinaryExpression({ left, start, end }) {
      // Of a kind that the types do not know here.
      if (String(left.type) === "PrivateIdentifier")
        throw new SyntaxError(`${code.slice(start, end)} has no plain form`);
    },
    PrivateIdentifier({ name, start, end }) {
      const home = scopes.findLast(({ hidden }) => hidden.has(name));
      if (home === undefined) throw new SyntaxError(`no class has #${name}`);
      if (!isGone(start)) edits.push({ start, end, text: `$${home.name}_${name}` });
    },
  }).visit(program);
  return edits;
}

function scopeOf({ body }: Class, name: string): ClassScope {
  const hidden = body.body.map(privateName).filter((one) => one !== undefined);
  const set = body.body.flatMap((member) =>
    member.type === "MethodDefinition" && member.kind === "constructor" ? setBy(member.value.body?.body ?? []) : [],
  );
  return { name, hidden: new Set(hidden), set: new Set(set) };
}

function privateName(member: Member): string | undefined {
  return "key" in member && member.key.type === "PrivateIdentifier" ? member.key.name : undefined;
}

/** The fields that the statements of a constructor set, one after the other. */
function setBy(statements: readonly Statement[]): string[] {
  return statements.flatMap((statement) => {
    if (statement.type !== "ExpressionStatement" || statement.expression.type !== "AssignmentExpression") return [];
    const { left, operator } = statement.expression;
    if (operator !== "=" || left.type !== "MemberExpression" || left.object.type !== "ThisExpression") return [];
    if (left.property.type === "PrivateIdentifier") return [`#${left.property.name}`];
    return !left.computed && left.property.type === "Identifier" ? [left.property.name] : [];
  });
}

/** A field that is declared without a value, and that the constructor gives one. */
function isSetAnyway(member: Member, { set }: ClassScope): boolean {
  if (member.type !== "PropertyDefinition" || member.value !== null || member.static || member.computed) return false;
  const { key } = member;
  if (key.type === "PrivateIdentifier") return set.has(`#${key.name}`);
  return key.type === "Identifier" && set.has(key.name);
}
