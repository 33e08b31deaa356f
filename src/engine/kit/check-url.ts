import { InvalidArgumentError } from '../../base/errors.js'

/**
 * Checks the parts of a server's URL that are ambiguous, before it is parsed and an error contains a part of it.
 * @throws InvalidArgumentError that does not contain the password
 */
export function checkUrl(url: string): void {
  checkSpaces(url)
  checkEncoding(url)
}

/**
 * Rejects a URL with white space at its end or after the scheme, for example from a file that ends with a line break.
 * It would name another folder, prefix or path, so its locks would not exclude processes that use the right URL.
 * @throws InvalidArgumentError
 */
export function checkSpaces(url: string): void {
  if (!/^[^:]*:\s|\s$/.test(url)) return
  const scheme = url.slice(0, url.indexOf(':'))
  throw new InvalidArgumentError(
    `a URL with ${scheme}: must have no white space at its end or after the scheme: trim it, or write a space as %20`,
  )
}

/**
 * Rejects a URL in which the end of the password is ambiguous, before an error contains a part of the URL.
 * @throws InvalidArgumentError
 */
function checkEncoding(url: string): void {
  const scheme = url.slice(0, url.indexOf(':'))
  if (!/^[^/]*:\/\/([^@/?#]*@)?[^@]*$/.test(url)) {
    throw new InvalidArgumentError(
      `a URL with ${scheme}: must have // after the scheme and one @, between password and host; in users, passwords, paths and ` +
        'parameters, write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25',
    )
  }
}
