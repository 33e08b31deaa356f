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
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw new UnavailableError(`The ${engine} client package that is installed cannot be loaded`, {
      cause: error,
    })
  }
}
