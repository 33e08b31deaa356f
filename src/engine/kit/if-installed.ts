import { UnavailableError } from '../../errors.js'

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
    const { code, pnpCode } = error as NodeJS.ErrnoException & { readonly pnpCode?: string }
    // Yarn's Plug'n'Play has a code of its own for a peer dependency that the application does not declare.
    if (
      code === 'ERR_MODULE_NOT_FOUND' ||
      code === 'MODULE_NOT_FOUND' ||
      pnpCode === 'MISSING_PEER_DEPENDENCY'
    )
      return undefined
    throw new UnavailableError(`can't load the installed ${engine} client package`, {
      cause: error,
    })
  }
}
