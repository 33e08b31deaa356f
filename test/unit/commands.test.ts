import { readdirSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import config from '../../vitest.config.js'

interface Project {
  readonly name: string
  readonly include: readonly string[]
  readonly exclude?: readonly string[]
}

type Names = Readonly<Record<string, string>>

interface Manifest {
  readonly version: string
  readonly scripts: Names
  readonly dependencies: Names
  readonly devDependencies: Names
  readonly peerDependencies: Names
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const { scripts, devDependencies } = parsed('package.json') as Manifest
const { packages: locked } = parsed('package-lock.json') as {
  readonly packages: Readonly<Record<string, { readonly resolved?: string; readonly link?: boolean }>>
}
const projects = config.test!.projects!.map(project => (project as { readonly test: Project }).test)
const files = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.test.ts'))
  .map(file => `test/${file}`)

function parsed(path: string): unknown {
  return JSON.parse(readFileSync(`${root}${path}`, 'utf8'))
}

function runs({ include, exclude = [] }: Project, file: string): boolean {
  const matches = (glob: string): boolean => matchesGlob(file, glob)
  return include.some(matches) && !exclude.some(matches)
}

test('there are at most fifteen commands, and none has a script before or after it', () => {
  const names = Object.keys(scripts)
  expect(names.length).toBeLessThanOrEqual(15)
  expect(
    names.filter(name => names.some(other => name === `pre${other}` || name === `post${other}`)),
  ).toEqual([])
})

test('the packages of each set resolve to one version in the whole checkout', () => {
  const sets = readdirSync(`${root}scripts/packages`)
  // The paths of the checkout's own packages are relative to the folder of the set.
  const wanted = (folder: string, range: string): string =>
    range.startsWith('file:') ? join(folder, range.slice('file:'.length)) : range
  const named = sets.flatMap(set => {
    const manifest = parsed(`scripts/packages/${set}/package.json`) as Manifest
    return Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).map(
      ([name, range]) => [name, wanted(`scripts/packages/${set}`, range)] as const,
    )
  })
  expect(sets.filter(set => locked[`node_modules/signalbox-${set}`]?.link !== true)).toEqual([])
  expect(named.filter(([name]) => locked[`node_modules/${name}`] === undefined)).toEqual([])
  expect(named.filter(([name, range]) => wanted('', devDependencies[name] ?? range) !== range)).toEqual([])
})

test('our packages have one version, and each accepts the others in it', () => {
  const { version } = parsed('package.json') as Manifest
  for (const folder of ['.', ...readdirSync(`${root}packages`).map(name => `packages/${name}`)]) {
    const published = parsed(`${folder}/package.json`) as Manifest
    expect(published.version, folder).toBe(version)
    const ours = Object.entries({ ...published.dependencies, ...published.peerDependencies }).filter(
      ([name]) => /^signalbox(-|$)/.test(name),
    )
    expect(ours.map(([name]) => name)).toEqual(
      ours.filter(([, range]) => range === `^${version}`).map(([name]) => name),
    )
  }
})

test('no lock file records the address of a registry', () => {
  for (const folder of ['.', ...['native', 'nestjs', 'orms', 'queues'].map(name => `test/interop/${name}`)])
    expect(readFileSync(`${root}${folder}/package-lock.json`, 'utf8')).not.toMatch(/"resolved": "\w+:/)
})

test('each test project is run by exactly one command', () => {
  const commands = ['test', 'test:all', 'test:long'].map(name => scripts[name]!)
  const run = commands.flatMap(command =>
    [...command.matchAll(/--project ([\w-]+)/g)].map(match => match[1]!),
  )
  expect(run.sort()).toEqual(projects.map(({ name }) => name).sort())
})

test('each test file is in exactly one project', () => {
  expect(files.filter(file => projects.filter(project => runs(project, file)).length !== 1)).toEqual([])
})

test('the files of the contract on a quorum have all of its checks', () => {
  const parts = files
    .filter(file => file.startsWith('test/contract/quorum-'))
    .map(file =>
      /part: (\d+), of: (\d+)/
        .exec(readFileSync(root + file, 'utf8'))!
        .slice(1)
        .map(Number),
    )
  expect(parts.sort()).toEqual(parts.map((_, index) => [index + 1, parts.length]))
})
