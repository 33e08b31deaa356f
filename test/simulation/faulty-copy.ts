import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/** A mistake that could have been made in the sources: `text` in a file is replaced by `wrong`. */
export interface Mistake {
  readonly name: string
  /** Below `src/`. */
  readonly file: string
  readonly text: string
  readonly wrong: string
}

/** A copy of the sources, until it is removed. */
interface FaultyCopy {
  /** Imports a module by its path below `src/`, ending in `.js`. */
  load(path: string): Promise<unknown>
  remove(): void
}

const root = fileURLToPath(new URL('../../src/', import.meta.url))
const IMPORT = /(?:from|import) '(\.[^']*)\.js'/g

/** The sources as JavaScript, by path below `src/`: each is read and translated once. */
const originals = new Map<string, { readonly code: string; readonly imports: readonly string[] }>()

/**
 * Copies what the entries import, and they themselves, with a mistake in it.
 * @param entries paths below `src/`.
 * @throws Error when the text that is to be replaced is not there exactly once
 */
export function faultyCopy(mistake: Mistake, entries: readonly string[]): FaultyCopy {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-fault-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const written = new Set<string>()
  const write = (path: string): void => {
    if (written.has(path)) return
    written.add(path)
    const { code, imports } = original(path)
    const target = join(folder, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, path === mistake.file ? translate(changed(mistake)) : code)
    for (const imported of imports) write(imported)
  }
  for (const entry of entries) write(entry)
  return {
    load: path => import(pathToFileURL(join(folder, path)).href),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

function changed({ name, file, text, wrong }: Mistake): string {
  const source = readFileSync(join(root, file), 'utf8')
  const times = source.split(text).length - 1
  if (times !== 1) throw new Error(`the fault "${name}" finds its text ${times} times in ${file}: ${text}`)
  return source.replace(text, () => wrong)
}

function original(path: string): { readonly code: string; readonly imports: readonly string[] } {
  const known = originals.get(path)
  if (known) return known
  const source = readFileSync(join(root, path), 'utf8')
  const imports = [...source.matchAll(IMPORT)].map(match =>
    relative(root, join(root, dirname(path), `${match[1]!}.ts`)),
  )
  const found = { code: translate(source), imports }
  originals.set(path, found)
  return found
}

function translate(source: string): string {
  const { ES2022 } = ts.ScriptTarget
  return ts.transpileModule(source, { compilerOptions: { target: ES2022, module: ts.ModuleKind.ES2022 } })
    .outputText
}
