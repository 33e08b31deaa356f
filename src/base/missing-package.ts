import { MissingPackageError } from './errors.js'

/**
 * The error for a package that is not installed, with the command that installs it.
 * @param needs what needs it, as in `Redis needs a client package`. @param names of packages of which one is enough
 */
export function missingPackage(
  needs: string,
  names: readonly string[],
  cause?: unknown,
): MissingPackageError {
  const [name, ...others] = names
  const alternatives = others.length > 0 ? ` (or ${others.join(', ')})` : ''
  const [command, place] = installing(import.meta.url, process.versions['pnp'] !== undefined)
  return new MissingPackageError(`${needs}: ${command} ${name!}${alternatives}${place}`, { cause })
}

/** The commands of package managers that keep each package apart from others, by the folder in `node_modules`. */
const APART: Readonly<Record<string, string>> = { '.pnpm': 'pnpm add', '.store': 'yarn add' }

/**
 * The command, and where to run it. Only npm lets a package import what another one declares: pnpm, and Yarn unless it
 * works like npm, look into the package that depends on Signalbox.
 * @param url of a module of Signalbox
 */
function installing(url: string, isPlugAndPlay: boolean): readonly [command: string, place: string] {
  const [, folder = ''] = /\/node_modules\/(\.pnpm|\.store)\//.exec(url) ?? []
  const command = isPlugAndPlay ? 'yarn add' : APART[folder]
  return command === undefined ? ['npm install', ''] : [command, ', in the package that depends on signalbox']
}
