import { MissingPackageError } from './errors.js'

/** The parts of the errors of Node, of bundlers and of Yarn's Plug'n'Play for a module that can't be found. */
interface LoadFailure extends Error {
  readonly code?: string
  readonly pnpCode?: string
  readonly data?: { readonly request?: string }
}

/**
 * Returns the module of an optional package; undefined if the package is not installed.
 * @param name that `loading` imports: a package, or an entry of it.
 * @throws MissingPackageError if the package is installed but can't be loaded, for example because a package that it
 * needs is missing
 */
export async function ifInstalled<Module>(
  name: string,
  loading: Promise<Module>,
): Promise<Module | undefined> {
  try {
    return await loading
  } catch (error) {
    if (isMissing(name, error as LoadFailure)) return undefined
    const { message } = error as Error
    throw new MissingPackageError(`can't load the installed package ${name}: ${message}`, { cause: error })
  }
}

/** Whether an error says that a package was not found, and not another one that it imports. */
function isMissing(name: string, { code, pnpCode, data, message }: LoadFailure): boolean {
  const [, ofNode, ofBundle] =
    /Cannot find (?:module|package) '([^']*)'|^Dynamic require of "(.*)" is not supported$/.exec(message) ??
    []
  // An ES module made by esbuild lacks the packages that were not installed at that time. If it lacks another module,
  // then an installed CommonJS package requires it.
  if (ofBundle !== undefined) return isOf(name, ofBundle)
  // Yarn's Plug'n'Play has a code of its own for a peer dependency that the application does not declare.
  const isNotFound =
    code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND' || pnpCode === 'MISSING_PEER_DEPENDENCY'
  const missing = ofNode ?? data?.request
  return isNotFound && (missing === undefined || isOf(name, missing))
}

function isOf(name: string, missing: string): boolean {
  return missing === name || name.startsWith(`${missing}/`)
}
