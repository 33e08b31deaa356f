import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/** A mistake that could have been made in the sources, at the comment `// fault: NAME`. */
export interface Mistake {
  readonly name: string
  /** What stands there instead of the statement, property or operand that follows the comment; `''` for nothing. */
  readonly wrong: string
}

/** What a mistake replaces. */
interface Place {
  /** Below `src/`. */
  readonly file: string
  readonly start: number
  readonly end: number
}

/** A copy of the sources, until it is removed. */
interface FaultyCopy {
  /** Imports a module by its path below `src/`, ending in `.js`. */
  load(path: string): Promise<unknown>
  remove(): void
}

const root = fileURLToPath(new URL('../../src/', import.meta.url))
const MARKER = /^ *\/\/ fault: (.*)\n\s*(?:else )?/gm
const IMPORT = /(?:from|import) '(\.[^']*)\.js'/g

/** The sources as JavaScript, by path below `src/`: each is read and translated once. */
const originals = new Map<string, { readonly code: string; readonly imports: readonly string[] }>()

/**
 * Copies what the entries import, and they themselves, with a mistake in it.
 * @param entries paths below `src/`.
 * @throws Error when not exactly one comment names the mistake, or when it is in none of the files that were copied
 */
export function faultyCopy(mistake: Mistake, entries: readonly string[]): FaultyCopy {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-fault-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const place = placeOf(mistake.name)
  const written = new Set<string>()
  const write = (path: string): void => {
    if (written.has(path)) return
    written.add(path)
    const { code, imports } = original(path)
    const target = join(folder, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, path === place.file ? translate(changed(place, mistake.wrong)) : code)
    for (const imported of imports) write(imported)
  }
  for (const entry of entries) write(entry)
  if (!written.has(place.file))
    throw new Error(`the fault "${mistake.name}" is in ${place.file}, which is not copied`)
  return {
    load: path => import(pathToFileURL(join(folder, path)).href),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** The names of all faults that comments in the sources mark, each as often as it is marked. */
export function markedFaults(): string[] {
  return markers().map(({ name }) => name)
}

function placeOf(name: string): Place {
  const found = markers().filter(marker => marker.name === name)
  if (found.length !== 1) throw new Error(`the sources have ${found.length} comments "// fault: ${name}"`)
  const { file, start } = found[0]!
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022)
  let end: number | undefined
  const visit = (node: ts.Node): void => {
    // The outermost that starts there is met first.
    if (node.getStart(source) === start) end ??= node.end
    else ts.forEachChild(node, visit)
  }
  ts.forEachChild(source, visit)
  if (end === undefined)
    throw new Error(`nothing that can be replaced follows "// fault: ${name}" in ${file}`)
  return { file, start, end }
}

interface Marker {
  readonly name: string
  readonly file: string
  /** Where that begins which the comment is about. */
  readonly start: number
}

function markers(): readonly Marker[] {
  return (allMarkers ??= readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .flatMap(file =>
      [...read(file).matchAll(MARKER)].map(match => ({
        name: match[1]!,
        file,
        start: match.index + match[0].length,
      })),
    ))
}

let allMarkers: readonly Marker[] | undefined

function changed({ file, start, end }: Place, wrong: string): string {
  const source = read(file)
  return source.slice(0, start) + (wrong || ';') + source.slice(end)
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function original(path: string): { readonly code: string; readonly imports: readonly string[] } {
  const known = originals.get(path)
  if (known) return known
  const source = read(path)
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
