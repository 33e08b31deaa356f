import { file } from './file-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(file)
