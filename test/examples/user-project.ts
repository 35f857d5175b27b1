/**
 * A project that depends on `millrace`: the freshly built package as it would be installed, and programs beside it that
 * import it by name. Code that runs here runs for users.
 */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Ended, ROOT, runProgram } from "../repo/program.ts";

export const TSC = join(ROOT, "node_modules", ".bin", "tsc");

/** The strictest settings that a user may have. */
export const COMPILER_OPTIONS = {
  target: "es2024",
  lib: ["es2024", "esnext.disposable", "dom"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  noEmit: true,
};

export class UserProject implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "millrace-project-"));
  readonly packageFolder = join(this.folder, "node_modules", "millrace");

  static async build(): Promise<UserProject> {
    const project = new UserProject();
    mkdirSync(project.packageFolder, { recursive: true });
    const outDir = join(project.packageFolder, "dist");
    const built = await runProgram(TSC, ["-p", "tsconfig.build.json", "--outDir", outDir]);
    if (built.code !== 0) throw new Error(`the package does not build:\n${built.stdout}`);
    const bundled = await runProgram(process.execPath, ["scripts/bundle.ts", outDir]);
    if (bundled.code !== 0) throw new Error(`the package cannot be bundled:\n${bundled.stderr}`);
    for (const name of ["package.json", "README.md", "LICENSE"]) {
      copyFileSync(join(ROOT, name), join(project.packageFolder, name));
    }
    cpSync(join(ROOT, "bin"), join(project.packageFolder, "bin"), { recursive: true });
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    for (const scope of [
      "@types",
      "undici-types",
      "zod",
      "react",
      "@modelcontextprotocol",
      ...Object.keys(dependencies),
    ]) {
      const link = join(project.folder, "node_modules", scope);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", scope), link);
    }
    project.write("package.json", JSON.stringify({ name: "project", private: true, type: "module" }));
    project.write(
      "tsconfig.json",
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ["*.ts", "pages/**/*.ts"] }),
    );
    return project;
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true });
    writeFileSync(join(this.folder, name), text);
  }

  /** Runs a program of the project with this Node. */
  run(name: string, ...args: string[]): Promise<Ended> {
    return runProgram(process.execPath, [name, ...args], { cwd: this.folder });
  }

  /** Runs a program of the project on another runtime. */
  runOn(runtime: "deno" | "bun", name: string): Promise<Ended> {
    const args = { deno: ["run", "--allow-all", "--no-lock", name], bun: [name] }[runtime];
    return runProgram(join(ROOT, "node_modules", ".bin", runtime), args, { cwd: this.folder });
  }

  /** Type-checks all programs. */
  check(): Promise<Ended> {
    return runProgram(TSC, ["-p", "tsconfig.json"], { cwd: this.folder });
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
