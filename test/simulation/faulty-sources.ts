import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import type { Box } from '../../src/box.js'
import type { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import type { IndeterminateError, UnavailableError } from '../../src/errors.js'
import type { Fault } from './faults.js'
import type { Sources } from './sources.js'

const root = fileURLToPath(new URL('../../src/', import.meta.url))
const ENTRIES = ['box.ts', 'engines/memory/memory-engine.ts', 'errors.ts']
const IMPORT = /(?:from|import) '(\.[^']*)\.js'/g

/** The sources as JavaScript, read once: by path below `src/`. */
let originals: ReadonlyMap<string, string> | undefined

/**
 * A copy of the sources with a mistake in them, in a temporary folder that `remove` deletes.
 * @throws Error when the text that is to be replaced is not there exactly once.
 */
export async function faultySources(fault: Fault): Promise<{ sources: Sources; remove: () => void }> {
  originals ??= translated()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-fault-'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const [path, code] of originals) {
    const target = join(folder, path.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, path === fault.file ? translate(changed(fault)) : code)
  }
  const load = (path: string): Promise<unknown> => import(pathToFileURL(join(folder, path)).href)
  const { Box: FaultyBox } = (await load('box.js')) as { Box: typeof Box }
  const engine = (await load('engines/memory/memory-engine.js')) as {
    MemoryEngine: typeof MemoryEngine
    MemorySpace: typeof MemorySpace
  }
  const errors = (await load('errors.js')) as {
    IndeterminateError: typeof IndeterminateError
    UnavailableError: typeof UnavailableError
  }
  const remove = (): void => rmSync(folder, { recursive: true })
  return { sources: { Box: FaultyBox, ...engine, ...errors }, remove }
}

function changed({ name, file, text, wrong }: Fault): string {
  const source = readFileSync(join(root, file), 'utf8')
  const times = source.split(text).length - 1
  if (times !== 1) throw new Error(`the fault "${name}" finds its text ${times} times in ${file}: ${text}`)
  return source.replace(text, () => wrong)
}

/** Everything that the entries import, and they themselves. */
function translated(): Map<string, string> {
  const found = new Map<string, string>()
  const follow = (path: string): void => {
    if (found.has(path)) return
    const source = readFileSync(join(root, path), 'utf8')
    found.set(path, translate(source))
    for (const match of source.matchAll(IMPORT))
      follow(relative(root, join(root, dirname(path), `${match[1]!}.ts`)))
  }
  for (const entry of ENTRIES) follow(entry)
  return found
}

function translate(source: string): string {
  const { ES2022 } = ts.ScriptTarget
  return ts.transpileModule(source, { compilerOptions: { target: ES2022, module: ts.ModuleKind.ES2022 } })
    .outputText
}
