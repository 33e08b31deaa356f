import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { publint, type Message } from 'publint'
import ts from 'typescript'
import { runProgram } from '../support/run-program.js'

/** A packed package. */
export interface Tarball {
  readonly path: string
  /** Size of the tarball, in bytes. */
  readonly size: number
  /** Paths in the package. */
  readonly files: readonly string[]
}

/** Packs a package into a folder, like `npm publish`. */
export async function pack(place: string, folder: string): Promise<Tarball> {
  const argv = ['pack', '--json', '--pack-destination', folder]
  const { stdout } = await runProgram('npm', argv, { cwd: place, timeLimit: 120_000 })
  const [{ filename, size, files }] = JSON.parse(stdout) as [
    {
      readonly filename: string
      readonly size: number
      readonly files: readonly { readonly path: string }[]
    },
  ]
  return { path: join(folder, filename), size, files: files.map(({ path }) => path) }
}

/** Returns publint's messages about a package. */
export async function publintMessages({ path }: Tarball): Promise<readonly Message[]> {
  const tarball = new Uint8Array(readFileSync(path)).buffer
  return (await publint({ strict: true, pack: { tarball } })).messages
}

/**
 * Creates a project and installs packages in it. The folder need not exist.
 * @param packages paths of tarballs, or names
 */
export async function installInto(
  project: string,
  packages: readonly string[],
  type: 'module' | 'commonjs' = 'module',
): Promise<void> {
  mkdirSync(project, { recursive: true })
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type }))
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await runProgram('npm', ['install', ...options, ...packages], { cwd: project, timeLimit: 120_000 })
}

/** Instruction for the case that a report of declarations differs. */
export const renew = 'if the change is intended: npx vitest run --project package -t "public API" --update'

/** Returns the declarations of a package, file by file, without comments. */
export async function declarationsOf({ path, files }: Tarball): Promise<string> {
  const texts = files
    .filter(file => /\.d\.c?ts$/.test(file))
    .sort()
    .map(async file => {
      const argv = ['xOf', path, `package/${file}`]
      const { stdout } = await runProgram('tar', argv, { cwd: dirname(path), timeLimit: 10_000 })
      return `// ${file}\n${withoutComments(stdout)}`
    })
  return (await Promise.all(texts)).join('\n')
}

function withoutComments(declarations: string): string {
  const file = ts.createSourceFile('declarations.d.ts', declarations, ts.ScriptTarget.ES2022)
  return ts.createPrinter({ removeComments: true }).printFile(file)
}

/**
 * Runs statements in a project, as an ES module and as CommonJS.
 * @param imports names that the statements use, by package.
 * @returns the output of each.
 */
export async function outputsOf(
  project: string,
  imports: Readonly<Record<string, string>>,
  statements: string,
): Promise<string[]> {
  const lines = (line: (names: string, from: string) => string): string =>
    Object.entries(imports)
      .map(([from, names]) => `${line(names, from)}\n`)
      .join('')
  const programs = {
    'program.mjs': `${lines((names, from) => `import { ${names} } from '${from}'`)}${statements}`,
    'program.cjs': `${lines((names, from) => `const { ${names} } = require('${from}')`)}void (async () => {${statements}})()`,
  }
  const outputs: string[] = []
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(project, name), text)
    const { stdout } = await runProgram(process.execPath, [name], { cwd: project, timeLimit: 60_000 })
    outputs.push(stdout)
  }
  return outputs
}
