/** The packages from npm, in sets: each command installs those that it needs. */
import { existsSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { npm, root } from './command.mjs'

/**
 * A folder for each set but `development`, which is a workspace of npm: its packages go into `node_modules` of the
 * checkout. None may depend on `signalbox`: its folder is the checkout, and npm would install all workspaces of the
 * checkout, so all sets. Therefore `.npmrc` has `legacy-peer-deps`, and our packages find `signalbox` by a link.
 */
const folder = 'scripts/packages'
/** Packages that run the programs: the dependencies of the checkout, and more. */
const run = 'run'
/** The devDependencies of the checkout, and the packages of `run`. */
const development = 'development'
/** Our packages that `development` has besides those of `run`. npm links a workspace only if it is asked for. */
const own = ['packages/conformance', 'packages/lockfile']

/** The names of the sets. */
export const packageSets = [development, run, 'peers', 'reference', 'packing', 'packed', 'runners', 'nest']

/**
 * Whether packages of the sets are not installed, or anything is not as package-lock.json has it.
 * @param {readonly string[]} sets
 */
export function areSetsMissing(sets) {
  const locked = read('package-lock.json')
  const installed = read('node_modules/.package-lock.json')
  const isCurrent = [...installed].every(([path, { version }]) => locked.get(path)?.version === version)
  // npm installs a package with all that it takes, so it is enough to look for those that are named.
  const named = [
    includesRoot(sets) && locked.get('')?.dependencies,
    sets.includes(development) && locked.get('')?.devDependencies,
    ...workspaces(sets).flatMap(path => [locked.get(path)?.dependencies, locked.get(path)?.devDependencies]),
  ].flatMap(packages => Object.keys(packages || {}))
  return !isCurrent || !named.every(name => installed.has(`node_modules/${name}`))
}

/**
 * Installs the sets, and again those that are installed, because npm removes what it is not asked to keep.
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
    // No package here needs its install script, and one of them would write into the home directory.
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
 * @param {string} file a lock file, relative to the checkout
 * @returns {ReadonlyMap<string, Locked>} what is there by its path; nothing when there is no file
 */
function read(file) {
  const path = join(root, file)
  if (!existsSync(path)) return new Map()
  const content = /** @type {{ packages: Record<string, Locked> }} */ (JSON.parse(readFileSync(path, 'utf8')))
  return new Map(Object.entries(content.packages))
}
