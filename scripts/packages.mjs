/** Sets of packages from npm. Each command installs the sets that it needs. */
import { existsSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { npm, root } from './command.mjs'

/**
 * Folder with a workspace of npm for each set except `development`. The packages of a set are installed into
 * `node_modules` of the checkout.
 *
 * No set may depend on `signalbox`: that package is the checkout itself, so npm would install all its workspaces. For
 * this reason, `.npmrc` sets `legacy-peer-deps`, and our packages resolve `signalbox` through a link.
 */
const folder = 'scripts/packages'
/** Name of the set that runs the programs: the dependencies of the checkout, and more. */
const run = 'run'
/** Name of the set with the devDependencies of the checkout and the packages of `run`. */
const development = 'development'
/**
 * Packages of this repository that `development` adds to those of `run`. npm links a workspace only if its name is
 * given.
 */
const own = ['packages/conformance', 'packages/lockfile']

/** The names of the sets. */
export const packageSets = [development, run, 'peers', 'reference', 'packing', 'packed', 'runners', 'nest']

/**
 * Whether a package of the sets is missing, or an installed package has another version than in package-lock.json.
 * @param {readonly string[]} sets
 */
export function areSetsMissing(sets) {
  const locked = read('package-lock.json')
  const installed = read('node_modules/.package-lock.json')
  const isCurrent = [...installed].every(([path, { version }]) => locked.get(path)?.version === version)
  // npm installs a package with all its dependencies, so checking the direct dependencies is enough.
  const named = [
    includesRoot(sets) && locked.get('')?.dependencies,
    sets.includes(development) && locked.get('')?.devDependencies,
    ...workspaces(sets).flatMap(path => [locked.get(path)?.dependencies, locked.get(path)?.devDependencies]),
  ].flatMap(packages => Object.keys(packages || {}))
  return !isCurrent || !named.every(name => installed.has(`node_modules/${name}`))
}

/**
 * Installs the sets, together with the sets that are already installed, because npm removes all others.
 * @param {readonly string[]} sets
 */
export function installSets(sets) {
  const installed = read('node_modules/.package-lock.json')
  const hasDevelopment = [...installed.values()].some(({ dev }) => dev)
  const kept = packageSets.filter(set =>
    set === development ? hasDevelopment : installed.has(`${folder}/${set}`),
  )
  const wanted = [...new Set([...sets, ...kept])]
  npm(
    'ci',
    // No package needs its install script here, and one of the scripts would write into the home directory.
    '--ignore-scripts',
    `--${wanted.includes(development) ? 'include' : 'omit'}=dev`,
    ...(includesRoot(wanted) ? ['--include-workspace-root'] : []),
    ...workspaces(wanted).map(path => `--workspace=${path}`),
  )
}

/** The link by which our packages find `signalbox`. npm does not know it, and may remove it. */
const link = join(root, 'node_modules/signalbox')

/** Whether packages are installed that would not find the checkout as `signalbox`. */
export function isCheckoutUnlinked() {
  const installed = join(root, 'node_modules')
  if (!existsSync(installed)) return false
  return !existsSync(link) || realpathSync(link) !== dirname(realpathSync(installed))
}

/** Makes our packages find the checkout as `signalbox`. */
export function linkCheckout() {
  rmSync(link, { recursive: true, force: true })
  symlinkSync('..', link, 'junction')
}

/**
 * Whether the sets include the dependencies of the checkout.
 * @param {readonly string[]} sets
 */
function includesRoot(sets) {
  return sets.includes(run) || sets.includes(development)
}

/** @param {readonly string[]} sets */
function workspaces(sets) {
  const paths = sets.flatMap(set => (set === development ? [...own, `${folder}/${run}`] : `${folder}/${set}`))
  return [...new Set(paths)]
}

/**
 * @typedef {Readonly<Record<string, string>>} Names
 * @typedef {{ version?: string, dev?: boolean, dependencies?: Names, devDependencies?: Names }} Locked
 * @param {string} file path of a lock file, relative to the checkout
 * @returns {ReadonlyMap<string, Locked>} its packages by path; empty if there is no file
 */
function read(file) {
  const path = join(root, file)
  if (!existsSync(path)) return new Map()
  const content = /** @type {{ packages: Record<string, Locked> }} */ (JSON.parse(readFileSync(path, 'utf8')))
  return new Map(Object.entries(content.packages))
}
