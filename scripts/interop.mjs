/**
 * Installs and builds programs that tests and the bench use: clients in other languages whose locks exclude ours,
 * runtimes other than Node, a package from npm that must be compiled, ORMs whose transactions tests use, queues whose
 * jobs they limit, and applications of Nest.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { npm, root, run, SetupError } from './command.mjs'
import { installPackages, missingPackages } from './debian.mjs'
import { copyJars } from './java-servers.mjs'

/** Folder of the built programs, with a folder for each language. */
export const builtFolder = join(root, '.interop')

const sourceFolder = join(root, 'test/interop')

/**
 * `programs` are the required programs, each with its Debian package. `sources` matches the files from which the
 * language is built, in the folder of its name. `make` builds into `target`, an existing empty folder.
 * @typedef {{ name: string, programs: [string, string][], sources: RegExp, make: (target: string) => void }} Language
 */

/** Options that emit JavaScript into a folder `build/js` without type checks. */
const TRANSPILE =
  '--ignoreConfig --noCheck --noResolve --module esnext --target es2022 --types node --skipLibCheck ' +
  '--allowImportingTsExtensions --rewriteRelativeImportExtensions --rootDir . --outDir build/js'

/** @type {readonly Language[]} */
const languages = [
  {
    name: 'python',
    programs: [['python3', 'python3-venv']],
    sources: /^requirements\.txt$/,
    make(target) {
      // Debian's python3 lacks the module that creates environments.
      if (spawnSync('python3', ['-c', 'import ensurepip']).status !== 0) installPackages(['python3-venv'])
      run('python3', ['-m', 'venv', target])
      const requirements = join(sourceFolder, 'python/requirements.txt')
      run(join(target, 'bin/python'), ['-m', 'pip', 'install', '-q', '-r', requirements])
    },
  },
  {
    name: 'go',
    programs: [['go', 'golang-go']],
    sources: /\.go$|^go\.(mod|sum)$/,
    make(target) {
      checkGoVersion()
      run('go', ['build', '-o', join(target, 'redsync'), '.'], { cwd: join(sourceFolder, 'go') })
    },
  },
  {
    name: 'java',
    programs: [
      ['javac', 'default-jdk-headless'],
      ['mvn', 'maven'],
    ],
    sources: /\.java$|^pom\.xml$/,
    make(target) {
      const libraries = join(target, 'lib')
      const programs = [
        'Rounds',
        'RedissonRounds',
        'CuratorRounds',
        'HazelcastRounds',
        'HazelcastReader',
        'Cycles',
        'RedissonCycles',
        'CuratorCycles',
      ]
      const cwd = join(sourceFolder, 'java')
      copyJars(cwd, libraries)
      const sources = programs.map(name => `${name}.java`)
      run('javac', ['-d', join(target, 'classes'), '-cp', `${libraries}/*`, ...sources], { cwd })
    },
  },
  {
    name: 'native',
    programs: [
      ['g++', 'g++'],
      ['make', 'make'],
      ['python3', 'python3'],
    ],
    sources: /^package(-lock)?\.json$/,
    make(target) {
      for (const file of ['package.json', 'package-lock.json'])
        copyFileSync(join(sourceFolder, 'native', file), join(target, file))
      // Runs install scripts, because the one of this package compiles it.
      npm('ci', '--prefix', target)
    },
  },
  {
    name: 'runtimes',
    programs: [],
    sources: /^package\.json$/,
    make(target) {
      copyFileSync(join(sourceFolder, 'runtimes', 'package.json'), join(target, 'package.json'))
      // No lock file, because these versions determine the versions of the packages for each platform.
      npm('install', '--prefix', target, '--no-package-lock', '--ignore-scripts')
    },
  },
  {
    name: 'orms',
    programs: [],
    sources: /\.ts$|^(package(-lock)?\.json|schema\.prisma)$/,
    make() {
      // Installs into the source folder, where tests load the modules.
      const cwd = join(sourceFolder, 'orms')
      npm('ci', '--prefix', cwd, '--ignore-scripts')
      // Prisma downloads an engine unless this variable names a program. Its generated client uses no engine.
      const environment = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
      const argv = ['node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma']
      run(process.execPath, argv, { cwd, env: environment })
      // The bench needs JavaScript.
      const generated = readdirSync(join(cwd, 'build'), { recursive: true, encoding: 'utf8' })
      const modules = [...readdirSync(cwd), ...generated.map(path => join('build', path))]
      const compiler = join(root, 'node_modules/typescript/bin/tsc')
      const sources = modules.filter(path => path.endsWith('.ts'))
      run(process.execPath, [compiler, ...TRANSPILE.split(' '), ...sources], { cwd })
    },
  },
  {
    name: 'queues',
    programs: [],
    sources: /^package(-lock)?\.json$/,
    make: () => npm('ci', '--prefix', join(sourceFolder, 'queues'), '--ignore-scripts'),
  },
  {
    name: 'nestjs',
    programs: [],
    sources: /\.m?ts$|\.json$|^\.npmrc$/,
    make(target) {
      const cwd = join(sourceFolder, 'nestjs')
      // The package.json makes the compiled modules CommonJS.
      for (const file of ['package.json', 'package-lock.json', '.npmrc'])
        copyFileSync(join(cwd, file), join(target, file))
      npm('ci', '--prefix', target, '--ignore-scripts')
      // The applications import the built packages. No type check here, because a test checks their types.
      const options = [
        '--noEmit',
        'false',
        '--noCheck',
        '--paths',
        'null',
        '--rootDir',
        sourceFolder,
        '--outDir',
        target,
      ]
      run(process.execPath, ['node_modules/typescript/lib/tsc.js', '-p', cwd, ...options])
    },
  },
]

/** The names of all languages. */
export const languageNames = languages.map(({ name }) => name)

/**
 * @param {readonly string[]} names names of languages
 * @returns {string[]} those whose programs are missing or were built from other sources
 */
export function staleLanguages(names) {
  return languages.filter(one => names.includes(one.name) && isStale(one)).map(({ name }) => name)
}

/**
 * Builds the stale ones among these languages.
 * @param {readonly string[]} names names of languages
 * @throws {SetupError} if a missing program can't be installed, or a build fails
 */
export function buildLanguages(names) {
  const stale = languages.filter(one => names.includes(one.name) && isStale(one))
  const missing = missingPackages(new Map(stale.flatMap(({ programs }) => programs)))
  if (missing.length > 0) installPackages(missing)
  for (const language of stale) {
    const target = join(builtFolder, language.name)
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    language.make(target)
    writeFileSync(stamp(language), digest(language))
  }
}

/** @param {Language} language */
function isStale(language) {
  const path = stamp(language)
  return !existsSync(path) || readFileSync(path, 'utf8') !== digest(language)
}

/** @param {Language} language */
function stamp({ name }) {
  return join(builtFolder, name, '.built')
}

/**
 * Returns a hash of the sources and of the path of the checkout. After the checkout has moved, its programs must be
 * built again, because some contain absolute paths.
 * @param {Language} language
 */
function digest({ name, sources }) {
  const folder = join(sourceFolder, name)
  const hash = createHash('sha256').update(root)
  for (const file of readdirSync(folder).sort()) {
    if (sources.test(file)) hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)))
  }
  return hash.digest('hex')
}

/**
 * Checks the version of Go. Go before 1.21 can't parse the version in go.mod, and its error message does not explain
 * that.
 * @throws {SetupError} if Go is too old
 */
function checkGoVersion() {
  const needed = /^go (\d+\.\d+)/m.exec(readFileSync(join(sourceFolder, 'go/go.mod'), 'utf8'))?.[1] ?? ''
  const found = /go(\d+\.\d+)/.exec(spawnSync('go', ['version'], { encoding: 'utf8' }).stdout)?.[1] ?? ''
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number)
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return
  // From 1.21 on, Go downloads a later version automatically unless that is turned off.
  if (major === 1 && minor >= 21 && process.env.GOTOOLCHAIN !== 'local') return
  throw new SetupError(
    `The tests need Go ${needed} or later; this is Go ${found}, as Debian's package golang-go may be.`,
  )
}
