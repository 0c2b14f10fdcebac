package catalog

import "testing"

// Mutations belong to the operation that is meant for them, or to none.
func TestMutationsAreListedByWhatTheyDo(t *testing.T) {
	for entry, mutations := range map[string]map[string]string{
		"github-graphql": {
			"createPullRequest": "graphql.write", "addComment": "graphql.write", "createIssue": "graphql.write",
			"mergePullRequest": "graphql.merge", "enablePullRequestAutoMerge": "graphql.merge",
			"addPullRequestReview": "graphql.review", "lockLockable": "graphql.access",
			"transferIssue": "graphql.access", "updateProjectV2": "graphql.access",
			"createRepository": "graphql.repository", "deleteIssue": "graphql.delete",
			"deleteRepository": "", "createRef": "", "deleteRef": "", "createCommitOnBranch": "", "updateRepository": "",
			"submitPullRequestReview": "", "mergeBranch": "", "updateBranchProtectionRule": "", "enqueuePullRequest": "",
			"repository": "", "__type": "", "createissue": "", "createIssues": "",
		},
		"linear": {
			"issueCreate": "graphql.write", "issueUpdate": "graphql.write", "commentCreate": "graphql.write",
			"issueArchive": "graphql.delete", "issueDelete": "graphql.delete", "projectDelete": "graphql.delete",
			"webhookCreate": "", "apiKeyCreate": "", "userSuspend": "", "teamDelete": "", "organizationDelete": "",
			"fileUpload": "", "imageUploadFromUrl": "", "issueImportCreateJira": "", "issue": "",
		},
	} {
		e, _ := Find(entry)
		asks := map[string]bool{"graphql.merge": true, "graphql.review": true, "graphql.access": true,
			"graphql.repository": true, "graphql.delete": true}
		named := map[string]string{}
		for _, op := range e.Connector.Tools[0].Operations {
			if (op.Approval == "required") != asks[op.Name] {
				t.Errorf("%s: the approval of %s is %q", entry, op.Name, op.Approval)
			}
			for _, field := range op.GraphQL.Fields {
				if by, has := named[field]; has {
					t.Errorf("%s: %s has %s, and so has %s", entry, op.Name, field, by)
				}
				named[field] = op.Name
			}
			for _, field := range []string{"repository", "viewer", "issues", "__type", "__schema"} {
				if got := op.GraphQL.AllowsField("query", field); got != (op.Name == "graphql") {
					t.Errorf("%s: %s allows the query %s: %v", entry, op.Name, field, got)
				}
			}
		}
		for mutation, want := range mutations {
			got := ""
			for _, op := range e.Connector.Tools[0].Operations {
				if op.GraphQL.AllowsField("mutation", mutation) {
					got = op.Name
				}
			}
			if got != want {
				t.Errorf("%s: the mutation %s is %q, want %q", entry, mutation, got, want)
			}
		}
	}
}
