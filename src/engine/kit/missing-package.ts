import { MissingPackageError } from '../../errors.js'

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

/**
 * The command, and where to run it. Only npm lets a package import what another one declares: pnpm and Yarn's
 * Plug'n'Play look into the package that depends on Signalbox.
 * @param url of a module of Signalbox
 */
function installing(url: string, isPlugAndPlay: boolean): readonly [command: string, place: string] {
  const place = ', in the package that depends on signalbox'
  if (isPlugAndPlay) return ['yarn add', place]
  return url.includes('/node_modules/.pnpm/') ? ['pnpm add', place] : ['npm install', '']
}
