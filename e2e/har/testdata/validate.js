// Validates the HAR file on standard input by the schema of the format.
const validate = require("/opt/har/node_modules/har-validator");
const har = JSON.parse(require("fs").readFileSync(0, "utf8"));
validate.har(har).then(
  () => console.log("valid " + har.log.entries.length),
  (err) => {
    console.log("invalid " + JSON.stringify(err.errors));
    process.exit(3);
  },
);
