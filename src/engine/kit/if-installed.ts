import { isBuiltin } from 'node:module'
import { UnavailableError } from '../../base/errors.js'

/**
 * A client package of an engine; undefined when it is not installed.
 * @param engine for the error. @throws UnavailableError when the package is installed and can't be loaded
 */
export async function ifInstalled<Package>(
  loading: Promise<Package>,
  engine: string,
): Promise<Package | undefined> {
  try {
    return await loading
  } catch (error) {
    const { code, pnpCode, message } = error as NodeJS.ErrnoException & { readonly pnpCode?: string }
    if (
      code === 'ERR_MODULE_NOT_FOUND' ||
      code === 'MODULE_NOT_FOUND' ||
      // Yarn's Plug'n'Play has a code of its own for a peer dependency that the application does not declare.
      pnpCode === 'MISSING_PEER_DEPENDENCY' ||
      isMissingInBundle(message)
    )
      return undefined
    throw new UnavailableError(`can't load the installed ${engine} client package`, {
      cause: error,
    })
  }
}

/**
 * Whether the error is from an ES module made by esbuild, which lacks the packages that were not installed at that
 * time. If it lacks a module of Node, then an installed CommonJS package requires it.
 */
function isMissingInBundle(message: string): boolean {
  const name = /^Dynamic require of "(.*)" is not supported$/.exec(message)?.[1]
  return name !== undefined && !isBuiltin(name)
}
