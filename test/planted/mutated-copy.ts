import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/** A mistake to plant into the sources, at the comment `// mutant: ID`. */
export interface Mutant {
  readonly id: string
  readonly description: string
  /** Replacement for the statement, property or operand that follows the comment; `''` removes it. */
  readonly wrong: string
}

/** The code that a mutant replaces. */
interface Place {
  /** Path relative to the checkout. */
  readonly file: string
  readonly start: number
  readonly end: number
}

/** A source with a mutant. */
export interface MutatedSource {
  /** Absolute path. */
  readonly path: string
  readonly code: string
}

/** A copy of the sources, which exists until it is removed. */
interface MutatedCopy {
  /** Imports a module by its path in the checkout, ending in `.js`. */
  load(path: string): Promise<unknown>
  remove(): void
}

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The folders with sources that can have mutants. */
const SOURCES = ['src', 'packages/hazelcast/src', 'packages/redis-quorum/src', 'packages/zookeeper/src']
/** The sources of the entries that our packages import by name. */
const ENTRIES: ReadonlyMap<string, string> = new Map([
  ['signalbox', 'src/index.ts'],
  ['signalbox/engine', 'src/engine/index.ts'],
  ['signalbox/redis', 'src/engines/redis/index.ts'],
])
const MARKER = /^ *\/\/ mutant: (.*)\n\s*(?:else )?/gm
const IMPORT = /(?:from|import) '(\.[^']*)\.js'/g
const NAMED_IMPORT = /(?<=from ')(signalbox(?:\/(?:engine|redis))?)(?=')/g

/** The sources as JavaScript, by path in the checkout. Each one is read and translated once. */
const originals = new Map<string, { readonly code: string; readonly imports: readonly string[] }>()

/**
 * Copies the entries and the modules that they import, with a mutant in the copy.
 * @param entries paths in the checkout
 * @throws Error unless exactly one comment names the mutant and one of the copied files contains it
 */
export function mutatedCopy(mutant: Mutant, entries: readonly string[]): MutatedCopy {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-mutant-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const place = placeOf(mutant.id)
  const written = new Set<string>()
  const write = (path: string): void => {
    if (written.has(path)) return
    written.add(path)
    const { code, imports } = original(path)
    const target = join(folder, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, path === place.file ? translate(changed(place, mutant.wrong)) : code)
    for (const imported of imports) write(imported)
  }
  for (const entry of entries) write(entry)
  if (!written.has(place.file))
    throw new Error(`the mutant ${mutant.id} is in ${place.file}, which is not copied`)
  return {
    load: path => import(pathToFileURL(join(folder, path)).href),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/**
 * Returns the source with the mutant in it.
 * @throws Error unless exactly one comment names the mutant
 */
export function mutatedSource(mutant: Mutant): MutatedSource {
  const place = placeOf(mutant.id)
  return { path: join(root, place.file), code: changed(place, mutant.wrong) }
}

/** Returns the IDs of all mutants that comments in the sources mark, each as often as it is marked. */
export function markedMutants(): string[] {
  return markers().map(({ id }) => id)
}

function placeOf(id: string): Place {
  const found = markers().filter(marker => marker.id === id)
  if (found.length !== 1) throw new Error(`the sources have ${found.length} comments "// mutant: ${id}"`)
  const { file, start } = found[0]!
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022)
  let end: number | undefined
  const visit = (node: ts.Node): void => {
    // The traversal meets the outermost node that starts there first.
    if (node.getStart(source) === start) end ??= node.end
    else ts.forEachChild(node, visit)
  }
  ts.forEachChild(source, visit)
  if (end === undefined) throw new Error(`nothing that can be replaced follows "// mutant: ${id}" in ${file}`)
  return { file, start, end }
}

interface Marker {
  readonly id: string
  readonly file: string
  /** Offset of the code that the comment is about. */
  readonly start: number
}

function markers(): readonly Marker[] {
  return (allMarkers ??= SOURCES.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(file => join(folder, file)),
  )
    .filter(file => file.endsWith('.ts'))
    .flatMap(file =>
      [...read(file).matchAll(MARKER)].map(match => ({
        id: match[1]!,
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

/** Reads a source, and replaces the names of imported entries with their paths. */
function read(file: string): string {
  return readFileSync(join(root, file), 'utf8').replaceAll(NAMED_IMPORT, name =>
    relative(dirname(file), ENTRIES.get(name)!).replace(/\.ts$/, '.js'),
  )
}

function original(path: string): { readonly code: string; readonly imports: readonly string[] } {
  const known = originals.get(path)
  if (known) return known
  const source = read(path)
  const imports = [...source.matchAll(IMPORT)].map(match => join(dirname(path), `${match[1]!}.ts`))
  const found = { code: translate(source), imports }
  originals.set(path, found)
  return found
}

function translate(source: string): string {
  const { ES2022 } = ts.ScriptTarget
  return ts.transpileModule(source, { compilerOptions: { target: ES2022, module: ts.ModuleKind.ES2022 } })
    .outputText
}
