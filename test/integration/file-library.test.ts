import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { builtProgram } from '../support/built-program.js'
import { linkPackages } from '../support/installed-packages.js'
import { runProgram } from '../support/run-program.js'

/** Opens a box on each URL in its arguments, and prints `opened` or the error. */
const PROGRAM = `
  import { open } from './src/index.js'
  for (const url of process.argv.slice(2)) {
    try {
      await (await open(url)).close()
      console.log('opened')
    } catch ({ name, message }) {
      console.log(name + ': ' + message)
    }
  }`

let folder: string

beforeEach(() => {
  // A folder without node_modules in any parent.
  folder = mkdtempSync(join(tmpdir(), 'signalbox-library-'))
  cpSync(builtProgram('src'), join(folder, 'src'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  linkPackages(folder, [])
  writeFileSync(join(folder, 'program.js'), PROGRAM)
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

async function opened(...urls: string[]): Promise<string[]> {
  const { stdout } = await runProgram(process.execPath, ['program.js', ...urls], {
    cwd: folder,
    timeLimit: 30_000,
  })
  return stdout.trim().split('\n')
}

const builtIn = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown

test.runIf(builtIn === undefined)(
  'without libsql the error says what to install, and nothing is made',
  async () => {
    const [file, memory] = await opened('file:./place', 'memory:')
    expect(file).toMatch(/^UnavailableError: /)
    expect(file).toContain('npm install libsql')
    expect(file).toContain('Node 22.13')
    expect(memory).toBe('opened')
    expect(readdirSync(folder)).not.toContain('place')
  },
)

test.runIf(builtIn !== undefined)('a runtime with SQLite needs no package', async () => {
  expect(await opened('file:./place')).toEqual(['opened'])
})
