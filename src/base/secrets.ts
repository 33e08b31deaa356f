const HIDDEN = '***'
/** Names of parameters whose values are secrets, in URLs and in connection strings such as `host=db password=…`. */
const PARAMETER =
  /((?:^|[?&;,\s])[^=&;,\s]*(?:pass|pwd|secret|token|auth|credential|key)[^=&;,\s]*\s*=)[^&;]*/gi
/** The part between the scheme, or its slashes, and the last `@` of the same word. */
const IN_WORD = /(\/\/)\S*@/g
/** A password may contain spaces: from a user and a colon that is not before a port, up to the last `@`. */
const WITH_BLANKS = /(\/\/)[^\s/@]*:(?!\d{1,5}(?:[\s/,?#]|$))[^]*@/g
/** Without slashes a scheme is followed by user and password. */
const WITHOUT_SLASHES = /(^\s*[a-z][\w+.-]*:\/?)[^\s/:@]*:[^]*@/i
/** An address that ends after the password: the part after the colon is not a port. */
const WITHOUT_HOST = /(\/\/[^\s/:@[\],]*:)(?!\d{1,5}(?:[\s/,?#]|:\s|$))[^\s/@,*]+/g

/**
 * Removes the passwords from the URLs in a text. It is applied to every text that may contain a URL, even a misspelt
 * one, so it removes too much rather than too little.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(WITH_BLANKS, `$1${HIDDEN}@`)
    .replace(IN_WORD, `$1${HIDDEN}@`)
    .replace(WITHOUT_SLASHES, `$1${HIDDEN}@`)
    .replace(WITHOUT_HOST, `$1${HIDDEN}`)
    .replace(PARAMETER, `$1${HIDDEN}`)
}
